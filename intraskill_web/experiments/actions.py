"""The buttons of an experiment: legal moves enabled, the others with the reason why not.

The rules themselves live in ``services``; this module says beforehand, in words, what they will
answer. A button that is wrong about it does no harm: the service refuses and the page shows its
message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _

from intraskill_web.core.labels import stage_label
from intraskill_web.experiments.models import Experiment, Round, Stage
from jobs.transitions import ACTIVE, DONE, RoundState, State

ACTIONS = ("start", "stop", "resume", "pause", "unpause", "extend")


@dataclass(frozen=True, slots=True)
class Button:
    """One action. ``why`` stands below it: what happens, or why it cannot be done now."""

    key: str
    label: str
    icon: str
    why: str
    enabled: bool
    url: str
    style: str = ""
    confirm: str = ""  # the question of the dialog; empty: no dialog

    def data(self) -> dict[str, object]:
        """For the JSON twin."""
        return {"action": self.key, "enabled": self.enabled, "why": self.why, "url": self.url}


def buttons(
    experiment: Experiment, last: Round | None, stages: Sequence[Stage], *, may_operate: bool
) -> list[Button]:
    """The buttons; ``last`` is the newest round and ``stages`` are its stages in order."""
    active = next((s for s in stages if s.state in ACTIVE), None)
    made = [
        _stop(experiment, active),
        _pause(experiment, active, stages),
        _resume(experiment, last, stages, active),
        _start(experiment, last),
        _extend(experiment, last),
    ]
    if may_operate:
        return made
    reason = _("Needs the role operator")
    return [Button(b.key, b.label, b.icon, reason, False, b.url, b.style) for b in made]


def _url(experiment: Experiment, action: str) -> str:
    return reverse("experiments:act", args=[experiment.name, action])


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
        "stop", _("Stop round"), "stop", why, enabled, _url(experiment, "stop"), "danger", confirm
    )


def _pause(experiment: Experiment, active: Stage | None, stages: Sequence[Stage]) -> Button:
    if experiment.pause_after_stage:
        return Button(
            "unpause", _("Do not pause"), "play", _("Now: pauses after this stage"), True,
            _url(experiment, "unpause"),
        )  # fmt: skip
    if active is None:
        return Button(
            "pause", _("Pause after stage"), "pause", _("Nothing is running"), False,
            _url(experiment, "pause"),
        )  # fmt: skip
    after = next((s for s in stages if s.position == active.position + 1), None)
    why = (
        _("Holds before %(stage)s") % {"stage": stage_label(after.kind).lower()}
        if after
        else _("Holds before the next round")
    )
    label = _("Pause after %(stage)s") % {"stage": stage_label(active.kind).lower()}
    return Button("pause", label, "pause", why, True, _url(experiment, "pause"))


def _resume(
    experiment: Experiment, last: Round | None, stages: Sequence[Stage], active: Stage | None
) -> Button:
    rest = next((s for s in stages if s.state not in DONE), None)
    url = _url(experiment, "resume")
    label = _("Resume")
    if active is not None:
        why = _("%(stage)s is running; stop it first") % {"stage": stage_label(active.kind)}
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


def _start(experiment: Experiment, last: Round | None) -> Button:
    number = 0 if last is None else last.number + 1
    label = _("Start round %(n)d") % {"n": number}
    url = _url(experiment, "start")
    if number >= experiment.rounds_planned:
        why = _("All %(n)d planned rounds have begun") % {"n": experiment.rounds_planned}
    elif last is not None and last.state != RoundState.SUCCEEDED:
        why = _("Needs a finished round %(n)d") % {"n": last.number}
    else:
        return Button("start", label, "play", _("Runs all six stages"), True, url, "primary")
    return Button("start", label, "play", why, False, url)


def _extend(experiment: Experiment, last: Round | None) -> Button:
    why = _("Now: stops after round %(n)d") % {"n": experiment.rounds_planned - 1}
    return Button("extend", _("Plan one round more"), "next", why, True, _url(experiment, "extend"))
