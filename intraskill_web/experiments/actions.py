"""The buttons of an experiment: legal moves enabled, the others with the reason why not.

The rules themselves live in ``services``; this module says beforehand, in words, what they will
answer. A button that is wrong about it does no harm: the service refuses and the page shows its
message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from intraskill_web.core.labels import stage_label
from intraskill_web.experiments.button import CHECKING, Button, act_url
from intraskill_web.experiments.models import Experiment, Round, Stage
from intraskill_web.experiments.plan_buttons import plan_buttons
from jobs.transitions import ACTIVE, DONE, RESUMABLE, WAITING, RoundState, State

SKIP_REFUSED = {  # as rework.NEEDED, in the words of the page
    "freeze": gettext_lazy("The round has no curriculum without it"),
    "train": gettext_lazy("The round has no checkpoint without it"),
    "validate": gettext_lazy("The gate compares with it"),
}
ACTIONS = ("start", "stop", "resume", "pause", "unpause", "extend", "until", "hold")


def buttons(
    experiment: Experiment, last: Round | None, stages: Sequence[Stage], *, may_operate: bool
) -> list[Button]:
    """The buttons; ``last`` is the newest round and ``stages`` are its stages in order."""
    active = next((s for s in stages if s.state in ACTIVE), None)
    made = [
        _stop(experiment, active),
        _pause(experiment, active, stages),
        _resume(experiment, last, stages, active),
        start_button(experiment, last),
        _change(experiment, last, stages, active),
        _skip(experiment, last, stages, active),
        *plan_buttons(experiment, last, stages),
    ]
    if may_operate and not experiment.imported:
        return made
    reason = _("Imported: it can be read, not run")
    if not may_operate:
        reason = _("Needs the role operator")
    return [replace(button, why=reason, enabled=False) for button in made]


def _stop(experiment: Experiment, active: Stage | None) -> Button:
    stopping = active is not None and active.state == State.STOPPING
    enabled = active is not None and not stopping
    if stopping:
        why = _("Stopping; waits for the process to end")
    elif active is None:
        why = _("Nothing is running")
    else:
        why = _("Within 10 s; can be resumed")
    confirm = ""
    if active is not None:
        confirm = _(
            "%(stage)s stops within 10 s. What is finished stays on disk; resuming goes on from "
            "there to the same result."
        ) % {"stage": stage_label(active.kind)}
    return Button(
        "stop",
        _("Stop round"),
        "stop",
        why,
        enabled,
        act_url(experiment, "stop"),
        "danger",
        confirm,
    )


def _pause(experiment: Experiment, active: Stage | None, stages: Sequence[Stage]) -> Button:
    if experiment.pause_after_stage:
        why = _("Now: pauses after this stage") if active else _("Paused; waits for you")
        url = act_url(experiment, "unpause")
        return Button("unpause", _("Do not pause"), "play", why, True, url)
    if active is None:
        return Button(
            "pause", _("Pause after stage"), "pause", _("Nothing is running"), False,
            act_url(experiment, "pause"),
        )  # fmt: skip
    after = next((s for s in stages if s.position == active.position + 1), None)
    why = (
        _("Holds before %(stage)s") % {"stage": stage_label(after.kind).lower()}
        if after
        else _("Holds before the next round")
    )
    label = _("Pause after %(stage)s") % {"stage": stage_label(active.kind).lower()}
    return Button("pause", label, "pause", why, True, act_url(experiment, "pause"))


def _resume(
    experiment: Experiment, last: Round | None, stages: Sequence[Stage], active: Stage | None
) -> Button:
    rest = next((s for s in stages if s.state not in DONE), None)
    url = act_url(experiment, "resume")
    label = _("Resume")
    if active is not None:
        why = _busy(active)
    elif last is None:
        why = _("No round has begun")
    elif rest is None:
        why = _("The round is finished")
    elif rest.state:
        why = _("New attempt at %(stage)s, from where it ended") % {
            "stage": stage_label(rest.kind).lower()
        }
        return Button("resume", label, "retry", why, True, url, "primary")
    else:
        why = _("Goes on with %(stage)s") % {"stage": stage_label(rest.kind).lower()}
        return Button("resume", label, "retry", why, True, url, "primary")
    return Button("resume", label, "retry", why, False, url)


def start_button(experiment: Experiment, last: Round | None) -> Button:
    """Begin the next round; disabled, with the reason, while none may begin."""
    number = 0 if last is None else last.number + 1
    label = _("Start round %(n)d") % {"n": number}
    url = act_url(experiment, "start")
    if number >= experiment.rounds_planned:
        why = ngettext(
            "The %(n)d planned round has begun",
            "All %(n)d planned rounds have begun",
            experiment.rounds_planned,
        ) % {"n": experiment.rounds_planned}
    elif last is not None and last.state != RoundState.SUCCEEDED:
        why = _("Needs a finished round %(n)d") % {"n": last.number}
    else:
        return Button("start", label, "play", _("Runs all six stages"), True, url, "primary",
                      busy=CHECKING)  # fmt: skip
    return Button("start", label, "play", why, False, url)


def _change(
    experiment: Experiment, last: Round | None, stages: Sequence[Stage], active: Stage | None
) -> Button:
    """Other settings: for the stage that ended badly and what follows, or for the next round."""
    stage = next((s for s in stages if s.state not in DONE), None)
    if last is not None and stage is not None and stage.state in RESUMABLE and active is None:
        args = [experiment.name, last.number, stage.kind]
        label = _("Retry with changes")
        why = _("A new attempt at %(stage)s with other settings") % {
            "stage": stage_label(stage.kind).lower()
        }
        return Button("change", label, "wrench", why, True, reverse("experiments:retry", args=args),
                      is_link=True)  # fmt: skip
    start = start_button(experiment, last)
    label = _("Next round with changes")
    url = reverse("experiments:next", args=[experiment.name])
    why = _("A clone of the last round, its differences shown first")
    if not start.enabled:
        why = start.why
    return Button("change", label, "wrench", why, start.enabled, url, is_link=True)


def _busy(active: Stage) -> str:
    name = {"stage": stage_label(active.kind)}
    if active.state in WAITING:
        return _("%(stage)s waits for its turn; stop it first") % name
    return _("%(stage)s is running; stop it first") % name


def _skip(
    experiment: Experiment, last: Round | None, stages: Sequence[Stage], active: Stage | None
) -> Button:
    stage = next((s for s in stages if s.state not in DONE), None)
    label = _("Skip a stage")
    if last is None or stage is None:
        return Button("skip", label, "next", _("No stage is due"), False, "", is_link=True)
    name = {"stage": stage_label(stage.kind)}
    url = reverse("experiments:skip", args=[experiment.name, last.number, stage.kind])
    label = _("Skip %(stage)s") % {"stage": name["stage"].lower()}
    if active is not None:
        why = _busy(active)
    elif stage.kind in SKIP_REFUSED:
        why = str(SKIP_REFUSED[stage.kind])
    elif stage.kind == "select" and last.number + 1 < experiment.rounds_planned:
        why = _("It only takes over what the gate selected")
    else:
        return Button("skip", label, "next", _("Goes on without it, with a reason"), True, url,
                      is_link=True)  # fmt: skip
    return Button("skip", label, "next", why, False, url, is_link=True)
