"""The buttons that say how far an experiment goes: one round more, until, hold.

Where the test split was played already, more rounds would play it again: that is asked first.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from intraskill_web.experiments.button import CHECKING, Button, act_url
from intraskill_web.experiments.models import Experiment, Round, Stage
from intraskill_web.experiments.planning import has_played_test
from jobs.transitions import RoundState


def plan_buttons(
    experiment: Experiment, last: Round | None, stages: Sequence[Stage]
) -> list[Button]:
    """The three; ``last`` is the newest round and ``stages`` are its stages."""
    again = test_again(experiment, last, stages)
    return [
        _extend(experiment, again),
        _until(experiment, last, again),
        _hold(experiment, last),
    ]


def _until(experiment: Experiment, last: Round | None, again: str) -> Button:
    begun = 0 if last is None else last.number + 1
    wanted = max(experiment.rounds_planned, begun + 1)
    why = _("Begins each next round by itself until so many are done")
    url = act_url(experiment, "until")
    return Button("until", _("Continue until"), "next", why, True, url,
                  confirm=again, keep=_("Leave the plan"), number=wanted,
                  asks_reason=bool(again), busy=CHECKING)  # fmt: skip


def _hold(experiment: Experiment, last: Round | None) -> Button:
    enabled = experiment.auto_continue
    why = _("Finishes the round, then waits for you")
    if _is_over(experiment, last):
        why = ngettext(
            "The %(n)d planned round is finished",
            "All %(n)d planned rounds are finished",
            experiment.rounds_planned,
        ) % {"n": experiment.rounds_planned}
        enabled = False
    elif not experiment.auto_continue:
        why = _("Already so: each round waits for you")
    return Button("hold", _("Hold after this round"), "pause", why, enabled,
                  act_url(experiment, "hold"))  # fmt: skip


def _extend(experiment: Experiment, again: str) -> Button:
    why = _("Now: stops after round %(n)d") % {"n": experiment.rounds_planned - 1}
    if again:
        why = _("The test split will be played again")
    url = act_url(experiment, "extend")
    return Button("extend", _("Plan one round more"), "next", why, True, url,
                  confirm=again, keep=_("Leave the plan"), asks_reason=bool(again),
                  offered=experiment.rounds_planned + 1)  # fmt: skip


def _is_over(experiment: Experiment, last: Round | None) -> bool:
    """Whether the last planned round is finished."""
    return (
        last is not None
        and last.number + 1 >= experiment.rounds_planned
        and last.state == RoundState.SUCCEEDED
    )


def test_again(experiment: Experiment, last: Round | None, stages: Sequence[Stage]) -> str:
    """What to ask before more rounds are planned once the test split was played; else empty."""
    if last is None or not has_played_test(experiment, last, stages):
        return ""
    return _(
        "The test split is for final figures, and round %(n)d has played it. The new last round "
        "plays it again: each look makes its figures weaker. Who asked, when and why is recorded "
        "for good."
    ) % {"n": last.number}
