"""The earliest causal divergence of a failed trace, found by trials.

Each violation alone is repaired first, earliest first, while the agent keeps all its other faults.
Where no single repair wins, the earliest ones are repaired together, one more each time, and then
those left out again that turn out not to be needed. What remains is the smallest repair found; its
earliest member is the divergence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trainer.analyst.rules.goal import Goal
from trainer.analyst.rules.shopper import Shopper
from trainer.analyst.rules.trials import OpenSession, Trial, play_trial
from trainer.analyst.rules.violations import Turn, Violation

Repair = tuple[Violation, ...]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """``repair`` is empty when no trial won; otherwise its members stand in order of turns."""

    violations: tuple[Violation, ...]
    repair: tuple[Violation, ...]
    trials: tuple[Trial, ...]


@dataclass(slots=True)
class Examiner:
    """Examines one failed trace; at most ``most_trials`` sessions are opened for it."""

    goal: Goal
    turns: Sequence[Turn]
    open_session: OpenSession
    limit: int
    most_trials: int

    def diagnose(self, violations: Sequence[Violation]) -> Diagnosis:
        """Try repairs of ``violations``, which stand in order of turns."""
        trials: list[Trial] = []

        def wins(repair: Repair) -> bool:
            if len(trials) >= self.most_trials:
                return False
            trials.append(self._try(repair, violations, index=len(trials) + 1))
            return trials[-1].success

        return Diagnosis(tuple(violations), _smallest(tuple(violations), wins), tuple(trials))

    def _try(self, repair: Repair, violations: Sequence[Violation], *, index: int) -> Trial:
        kept = {violation.mechanism for violation in violations}
        kept -= {violation.mechanism for violation in repair}
        return play_trial(
            self.open_session,
            self.turns[: repair[0].turn],
            Shopper(self.goal, kept),
            index=index,
            repaired=[violation.mechanism for violation in repair],
            limit=self.limit,
        )


def _smallest(violations: Repair, wins: Callable[[Repair], bool]) -> Repair:
    """The first repair that wins: of one violation, else of the earliest ones together."""
    for violation in violations:
        if wins((violation,)):
            return (violation,)
    for size in range(2, len(violations) + 1):
        if wins(violations[:size]):
            return _needed(violations[:size], wins)
    return ()


def _needed(repair: Repair, wins: Callable[[Repair], bool]) -> Repair:
    """Leave out, latest first, what a winning repair does not need."""
    for violation in reversed(repair):
        smaller = tuple(each for each in repair if each != violation)
        if smaller and wins(smaller):
            repair = smaller
    return repair
