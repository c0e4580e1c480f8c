"""Which finished groups train the policy: the dynamic sampling filter and its waves.

A wave of groups is submitted whenever fewer groups are outstanding or kept than the target needs.
Groups are offered in the order in which they finished; the local engine finishes a wave as a whole
and offers it in group order. Each group is judged once:

1. A group with an unscored episode is dropped and never salvaged; too many of them in a row end the
   run, because then the shop or the engine is broken, not the policy.
2. A group whose rewards are all equal carries no gradient and is dropped, but only while enough
   others remain: once no more than the target remain it is kept.
3. Every other group is kept until the target is full; later ones are surplus.

Specification: training.md §4.8, with its scenario table.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import Literal

from trainer.errors import IncompleteError
from trainer.grpo.groups import Group

UNSCORED = "shopsim_unscored_technical_group"
ZERO_STD = "shopsim_zero_std_group"
TIE_TOLERANCE = 1e-6

Verdict = Literal["kept", "kept_tied", "surplus", "dropped"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of a group; ``reason`` is set for dropped ones and for ties that were kept."""

    verdict: Verdict
    reason: str | None = None

    @property
    def kept(self) -> bool:
        """The group trains the policy."""
        return self.verdict in ("kept", "kept_tied")


class TooManyFailedGroups(IncompleteError):
    """So many groups in a row could not be scored that going on would be a waste."""


class FailureStreak:
    """Counts groups in a row that could not be scored; lives as long as the run."""

    def __init__(self, limit: int, count: int = 0) -> None:
        if limit < 1:
            raise ValueError(f"the limit of failed groups must be at least 1, not {limit}")
        self.limit = limit
        self.count = count
        self._causes: deque[str] = deque(maxlen=5)

    def note(self, group: Group) -> None:
        """Count the group. Raises TooManyFailedGroups when the limit is reached."""
        if group.all_scored:
            self.count = 0
            return
        self.count += 1
        self._causes.extend(sorted(failure_causes(group)))
        if self.count >= self.limit:
            raise TooManyFailedGroups(
                f"{self.count} groups in a row could not be scored "
                f"(limit {self.limit}); last causes: {'; '.join(self._causes) or 'no episodes'}"
            )


class WaveFilter:
    """The filter of one step."""

    def __init__(self, *, target: int, wave: int, streak: FailureStreak) -> None:
        if wave < target:
            raise ValueError(f"a wave of {wave} groups can never fill a target of {target}")
        self.target = target
        self.wave = wave
        self.waves = 0
        self.kept = 0
        self.drops: Counter[str] = Counter()
        self._streak = streak
        self._remaining = 0

    @property
    def full(self) -> bool:
        """The target is reached."""
        return self.kept >= self.target

    def open_wave(self) -> bool:
        """Whether another wave must be submitted now; counts it as submitted."""
        if self.full or self._remaining >= self.target:
            return False
        self.waves += 1
        self._remaining += self.wave
        return True

    def offer(self, group: Group) -> Decision:
        """Judge a finished group. Raises TooManyFailedGroups."""
        self._streak.note(group)
        if not group.all_scored:
            return self._drop(UNSCORED)
        tied = is_tied(group)
        if tied and self._remaining > self.target:
            return self._drop(ZERO_STD)
        if self.full:
            return Decision("surplus")
        self.kept += 1
        return Decision("kept_tied", ZERO_STD) if tied else Decision("kept")

    def _drop(self, reason: str) -> Decision:
        self._remaining -= 1
        self.drops[reason] += 1
        return Decision("dropped", reason)


def is_tied(group: Group) -> bool:
    """Whether the rewards give no gradient: fewer than two, or a spread up to 1e-6."""
    rewards = group.rewards
    return len(rewards) < 2 or max(rewards) - min(rewards) <= TIE_TOLERANCE


def failure_causes(group: Group) -> set[str]:
    """The distinct causes of a group's unscored episodes."""
    causes = set()
    for outcome in group.outcomes:
        error = outcome.trace.get("error")
        if not outcome.scored:
            causes.add(f"{error['type']} @ {error['stage']}" if error else "unscorable final")
    return causes
