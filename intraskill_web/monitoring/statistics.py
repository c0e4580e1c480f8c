"""The small statistics of the pages, exact and pure.

A share gets a Wilson interval; an inclusion rate is judged against the exact binomial band of its
target, so that noise of few groups is not read as a fault.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

Z95 = 1.959963984540054


def wilson(successes: float, n: int, z: float = Z95) -> tuple[float, float]:
    """The Wilson score interval of ``successes`` out of ``n``; n must be at least 1."""
    p = successes / n
    scale = 1 / (1 + z * z / n)
    centre = (p + z * z / (2 * n)) * scale
    half = z * scale * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


@lru_cache(maxsize=8192)
def binomial_band(n: int, p: float, level: float = 0.95) -> tuple[float, float]:
    """The central ``level`` range of X/n for X ~ Binomial(n, p): quantiles, as in any table."""
    tail = (1 - level) / 2
    return binomial_quantile(n, p, tail) / n, binomial_quantile(n, p, 1 - tail) / n


def binomial_quantile(n: int, p: float, probability: float) -> int:
    """The smallest k with P(X <= k) >= ``probability``, for probabilities not below 1e-6.

    Sums the mass upwards from nine deviations below the mean; what lies below is less than 1e-12.
    """
    if n < 1:
        raise ValueError(f"a binomial needs at least one trial (found {n})")
    if p <= 0 or p >= 1:
        return 0 if p <= 0 else n
    k = max(0, math.floor(n * p - 9 * math.sqrt(n * p * (1 - p)) - 9))
    log_mass = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    mass = math.exp(log_mass + k * math.log(p) + (n - k) * math.log1p(-p))
    odds = p / (1 - p)
    total = mass
    while total < probability * (1 - 1e-12) and k < n:
        mass *= (n - k) / (k + 1) * odds
        k += 1
        total += mass
    return k


def trailing_mean(values: Sequence[float | None], window: int = 5) -> list[float | None]:
    """The mean of the last ``window`` known values at each place; None while there is none."""
    means: list[float | None] = []
    for i in range(len(values)):
        known = [v for v in values[max(0, i - window + 1) : i + 1] if v is not None]
        means.append(sum(known) / len(known) if known else None)
    return means


def outliers(values: Sequence[float], spread: float = 3.0) -> list[int]:
    """Places that left the usual range: more than ``spread`` robust deviations from the median.

    The deviation is 1.4826 × the median absolute deviation; a constant series has no outliers
    except the values that differ from it.
    """
    if len(values) < 5:
        return []
    middle = _median(values)
    deviation = 1.4826 * _median([abs(v - middle) for v in values])
    return [i for i, v in enumerate(values) if abs(v - middle) > spread * deviation]


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
