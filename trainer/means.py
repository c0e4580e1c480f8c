"""Means and rates as every document states them: of the correctly rounded sum, none of nothing."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable


def mean(values: Collection[float]) -> float:
    """The mean of one value or more."""
    return math.fsum(values) / len(values)


def mean_or_none(values: Iterable[float]) -> float | None:
    """The mean; None of no value."""
    listed = list(values)
    return mean(listed) if listed else None


def rate(count: float, total: float) -> float | None:
    """``count`` of ``total``; None of nothing."""
    return count / total if total else None
