"""Inclusion against target by window of steps: how often each chunk was shown, with n and band.

Pure. Built on ``monitoring.inclusion``, whose counts a step are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from intraskill_web.monitoring.inclusion import Inclusion, InclusionRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Window(Inclusion):
    """The groups of steps ``first`` to ``last``."""

    first: int
    last: int


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
        made.append(Window(first=first, last=last, shown=shown, n=n, target=row.target))
    return made
