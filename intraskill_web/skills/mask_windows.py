"""Inclusion against target by window of steps: how often each chunk was shown, with n and band.

Pure. Built on ``monitoring.inclusion``, whose counts a step are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from intraskill_web.monitoring.inclusion import InclusionRow
from intraskill_web.monitoring.statistics import binomial_band


@dataclass(frozen=True, slots=True)
class Window:
    """``shown`` of ``n`` groups in steps ``first`` to ``last``; None observed without a group."""

    first: int
    last: int
    shown: int
    n: int
    target: float

    @property
    def observed(self) -> float | None:
        """shown / n."""
        return self.shown / self.n if self.n else None

    @property
    def band(self) -> tuple[float, float] | None:
        """Where 95 % of such rates lie when the target is true."""
        return binomial_band(self.n, self.target) if self.n else None

    @property
    def verdict(self) -> str:
        """``in``, ``below``, ``above``, or empty without a group."""
        observed, band = self.observed, self.band
        if observed is None or band is None:
            return ""
        return "below" if observed < band[0] else "above" if observed > band[1] else "in"


def spans(steps: Sequence[int], width: int) -> list[tuple[int, int]]:
    """First and last step of each window of ``width`` steps; the last may be shorter."""
    ordered = sorted(steps)
    return [
        (ordered[i], ordered[min(i + width, len(ordered)) - 1])
        for i in range(0, len(ordered), width)
    ]


def windows(row: InclusionRow, borders: Sequence[tuple[int, int]]) -> list[Window]:
    """The counts of ``row`` added up in each window."""
    made = []
    for first, last in borders:
        inside = [c for c in row.counts if first <= c.step <= last]
        shown, n = sum(c.shown for c in inside), sum(c.n for c in inside)
        made.append(Window(first, last, shown, n, row.target))
    return made
