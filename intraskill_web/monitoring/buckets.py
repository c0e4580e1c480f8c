"""Reducing a series to the pixels that show it: minimum, maximum and last value of each bucket.

The window is cut first, then reduced, so that zooming in shows more; the first and last point
always stay. No extreme is ever lost, unlike with random sampling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Reduced:
    """``x`` of the last point of each bucket, its value, and the bucket's extremes."""

    x: list[float]
    last: list[float]
    low: list[float]
    high: list[float]
    shown: int
    of: int


def reduce(
    points: Sequence[Point], buckets: int, window: tuple[float, float] | None = None
) -> Reduced:
    """``points`` (ascending x) inside ``window``, as at most ``buckets`` buckets of equal width."""
    if buckets < 1:
        raise ValueError(f"at least one bucket is needed (found {buckets})")
    inside = [p for p in points if window is None or window[0] <= p[0] <= window[1]]
    if len(inside) <= buckets:
        y = [p[1] for p in inside]
        return Reduced([p[0] for p in inside], y, list(y), list(y), len(inside), len(points))
    start, end = inside[0][0], inside[-1][0]
    width = (end - start) / buckets or 1.0
    cells: dict[int, list[Point]] = {}
    for point in inside:
        cells.setdefault(min(int((point[0] - start) / width), buckets - 1), []).append(point)
    result = Reduced([], [], [], [], len(cells), len(points))
    for _, cell in sorted(cells.items()):
        values = [p[1] for p in cell]
        result.x.append(cell[-1][0])
        result.last.append(cell[-1][1])
        result.low.append(min(values))
        result.high.append(max(values))
    if result.x[0] != start:
        result.x.insert(0, start)
        for target in (result.last, result.low, result.high):
            target.insert(0, inside[0][1])
    return result
