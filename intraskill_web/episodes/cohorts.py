"""How a behaviour metric differs between cohorts: descriptive, and on the same tasks. Pure.

*Descriptive* takes every episode of a cohort as it came; a change of it may be a change of tasks.
*Task-standardised* averages a task's episodes first and takes only tasks that all cohorts played,
so cohorts differ in what was done and not in what was asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev

Z = 1.959964
BINS = 12
LEAST_TASKS = 2


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its normal 95 % interval; no interval below two values."""

    n: int
    mean: float
    low: float | None
    high: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean | None:
        if not values:
            return None
        mean = fmean(values)
        if len(values) < 2:
            return cls(len(values), mean, None, None)
        half = Z * stdev(values) / len(values) ** 0.5
        return cls(len(values), mean, mean - half, mean + half)


@dataclass(frozen=True, slots=True)
class Cohort:
    """One cohort: descriptive mean, median and 90th percentile, and the standardised mean."""

    name: str
    described: Mean
    median: float
    p90: float
    standardised: Mean | None


@dataclass(frozen=True, slots=True)
class Bin:
    """Episodes whose value lies between ``low`` and ``high``, ends included."""

    low: float
    high: float
    count: int


Row = tuple[str, int, float]  # cohort, task, value


def cohorts(rows: Iterable[Row]) -> tuple[list[Cohort], int]:
    """Every cohort in the order it is first met, and on how many tasks they are standardised."""
    values: dict[str, list[float]] = defaultdict(list)
    tasks: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for name, task, value in rows:
        values[name].append(value)
        tasks[name][task].append(value)
    shared = _shared(tasks)
    made = []
    for name, own in values.items():
        described = Mean.of(own)
        assert described is not None
        standard = [fmean(tasks[name][task]) for task in shared] if shared else []
        made.append(
            Cohort(name, described, float(median(own)), _percentile(own, 0.9), Mean.of(standard))
        )
    return made, len(shared)


def _shared(tasks: Mapping[str, Mapping[int, Sequence[float]]]) -> list[int]:
    """The tasks that every cohort has; none where there is only one cohort to compare."""
    if len(tasks) < 2:
        return []
    common = set.intersection(*(set(own) for own in tasks.values()))
    return sorted(common) if len(common) >= LEAST_TASKS else []


def bins(values: Sequence[float]) -> list[Bin]:
    """At most BINS bins, none empty; one for each value where they are few and whole."""
    if not values:
        return []
    low, high = min(values), max(values)
    if all(value == int(value) for value in values) and high - low < BINS:
        found = range(int(low), int(high) + 1)
        return [Bin(v, v, sum(value == v for value in values)) for v in found]
    width = (high - low) / BINS or 1.0
    inside: list[list[float]] = [[] for _ in range(BINS)]
    for value in values:
        inside[min(BINS - 1, int((value - low) / width))].append(value)
    # ends are values that occur, so that the list behind a bin holds exactly its episodes
    return [Bin(min(own), max(own), len(own)) for own in inside if own]


def _percentile(values: Sequence[float], share: float) -> float:
    """Linear between the two nearest, as numpy's default."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
