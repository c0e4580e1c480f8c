"""Whether the groups of a round saw what they were meant to see.

All siblings of a group share one treatment; the treatment is the one that the frozen curriculum
draws for the group; two chunks are shown together as often as their independent targets say.
Pure: episodes' treatments in, findings out. Specification: training.md §3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

Shown = tuple[str, frozenset[str]]  # mode and visible chunks
STRONG = (1.0, 2.0, 3.0)  # standard deviations from which a shade begins


@dataclass(frozen=True, slots=True)
class Group:
    """One group: the treatments its episodes carry, most frequent first."""

    index: int
    treatments: tuple[Shown, ...]
    episodes: int
    drawn: Shown | None = None  # what the curriculum draws; None where it is not here

    @property
    def split(self) -> bool:
        """Siblings saw different things."""
        return len(self.treatments) > 1

    @property
    def off_plan(self) -> bool:
        """Somebody saw something else than was drawn."""
        return self.drawn is not None and any(t != self.drawn for t in self.treatments)


@dataclass(frozen=True, slots=True)
class Audit:
    """The groups of a round, and those that break a rule."""

    groups: int
    episodes: int
    checked: bool  # whether the draw of the curriculum could be repeated
    split: list[Group]
    off_plan: list[Group]

    @property
    def sound(self) -> bool:
        """No rule is broken, as far as it could be seen."""
        return not self.split and not self.off_plan


@dataclass(frozen=True, slots=True)
class Pair:
    """Two chunks among the assisted groups; on the diagonal one chunk alone.

    ``z`` is the distance from the expected count in standard deviations of the binomial.
    """

    shown: int
    n: int
    expected: float
    z: float

    @property
    def rate(self) -> float | None:
        """Share of assisted groups that saw both."""
        return self.shown / self.n if self.n else None

    @property
    def heat(self) -> str:
        """A class from n3 (far too seldom) over z to p3 (far too often)."""
        level = sum(abs(self.z) >= limit for limit in STRONG)
        return f"{'p' if self.z > 0 else 'n'}{level}" if level else "z"


def groups_of(
    rows: Iterable[tuple[int, str, Sequence[str]]], draw: Callable[[int], Shown] | None = None
) -> list[Group]:
    """Groups from (group index, mode, chunk ids) of every episode."""
    found: dict[int, dict[Shown, int]] = {}
    for index, mode, ids in rows:
        seen = found.setdefault(index, {})
        shown = mode, frozenset(ids)
        seen[shown] = seen.get(shown, 0) + 1
    return [
        Group(
            index=index,
            treatments=tuple(sorted(seen, key=lambda t: (-seen[t], t[0], sorted(t[1])))),
            episodes=sum(seen.values()),
            drawn=draw(index) if draw else None,
        )
        for index, seen in sorted(found.items())
    ]


def audit(groups: Sequence[Group]) -> Audit:
    """What the groups break."""
    return Audit(
        groups=len(groups),
        episodes=sum(g.episodes for g in groups),
        checked=bool(groups) and all(g.drawn is not None for g in groups),
        split=[g for g in groups if g.split],
        off_plan=[g for g in groups if g.off_plan],
    )


def together(groups: Sequence[Group], targets: Mapping[str, float]) -> list[list[Pair]]:
    """The square of all pairs in the order of ``targets``, over the assisted groups."""
    assisted = [g.treatments[0][1] for g in groups if g.treatments[0][0] != "skill_free"]
    n = len(assisted)
    ids = list(targets)
    holders = {i: {k for k, seen in enumerate(assisted) if i in seen} for i in ids}
    return [[_pair(a, b, holders, targets, n) for b in ids] for a in ids]


def _pair(
    a: str, b: str, holders: Mapping[str, set[int]], targets: Mapping[str, float], n: int
) -> Pair:
    p = targets[a] if a == b else targets[a] * targets[b]
    shown = len(holders[a] & holders[b])
    spread = math.sqrt(n * p * (1 - p))
    gap = shown - n * p
    return Pair(shown, n, n * p, gap / spread if spread else 0.0 if abs(gap) < 1e-9 else math.inf)
