"""Counterfactual trials: the trace again, up to a turn, and from there with a repair.

Every trial is played in a fresh session of the shop, with the turns that the agent had left. It
counts as terminal when the shop scored it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trainer.analyst.redaction import redact
from trainer.analyst.rules.shopper import Shopper
from trainer.analyst.rules.violations import Turn
from trainer.shop.types import Action, Observation, StepResult

Row = dict[str, Any]


class TrialSession(Protocol):
    """A fresh session of one task."""

    def reset(self) -> Observation: ...
    def step(self, action: Action) -> StepResult: ...


#: opens a session that allows so many actions
OpenSession = Callable[[int], TrialSession]


@dataclass(frozen=True, slots=True)
class Trial:
    """A finished trial; ``actions`` are live and were accepted or refused by the shop."""

    index: int
    repaired: tuple[str, ...]
    actions: tuple[str, ...]
    valid: int
    result: StepResult

    @property
    def success(self) -> bool:
        return self.result.reward_detail.get("r_success") == 1

    def to_record(self) -> Row:
        """The trial as cards keep it."""
        return {
            "trial": self.index,
            "repaired": list(self.repaired),
            "actions": [redact(action) for action in self.actions],
            "reward": self.result.reward,
            "reward_detail": dict(self.result.reward_detail),
            "purchase": dict(self.result.purchase),
            "termination_reason": self.result.termination_reason,
        }


def play_trial(
    open_session: OpenSession,
    before: Sequence[Turn],
    shopper: Shopper,
    *,
    index: int,
    repaired: Sequence[str],
    limit: int,
) -> Trial:
    """Replay ``before`` in a fresh session of ``limit`` turns, then let ``shopper`` finish.

    Turns that were lost to protocol errors are lost in the trial too.
    """
    lost = sum(turn.action is None for turn in before)
    allowed = max(1, limit - lost)
    session = open_session(allowed)
    page = session.reset()
    played: list[str] = []
    valid = 0
    script = [turn.action for turn in before if turn.action is not None]
    while True:
        action = script.pop(0) if script else shopper.act(page.state, allowed - len(played))
        result = session.step(action)
        played.append(str(action))
        valid += bool(result.feedback and result.feedback["valid"])
        if result.done:
            return Trial(index, tuple(repaired), tuple(played), valid, result)
        page = result.observation
