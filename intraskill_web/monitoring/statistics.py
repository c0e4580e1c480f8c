"""The small statistics of the pages, exact and pure.

A share gets a Wilson interval; an inclusion rate is judged against the exact binomial band of its
target, so that noise of few groups is not read as a fault.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Z95 = 1.959963984540054


def wilson(successes: float, n: int, z: float = Z95) -> tuple[float, float]:
    """The Wilson score interval of ``successes`` out of ``n``; n must be at least 1."""
    p = successes / n
    scale = 1 / (1 + z * z / n)
    centre = (p + z * z / (2 * n)) * scale
    half = z * scale * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def binomial_band(n: int, p: float, level: float = 0.95) -> tuple[float, float]:
    """The central ``level`` range of X/n for X ~ Binomial(n, p): quantiles, as in any table."""
    tail = (1 - level) / 2
    return binomial_quantile(n, p, tail) / n, binomial_quantile(n, p, 1 - tail) / n


def binomial_quantile(n: int, p: float, probability: float) -> int:
    """The smallest k with P(X <= k) >= ``probability``."""
    if n < 1:
        raise ValueError(f"a binomial needs at least one trial (found {n})")
    if p <= 0:
        return 0
    if p >= 1:
        return n
    log_p, log_q = math.log(p), math.log1p(-p)
    total = 0.0
    for k in range(n + 1):
        log_term = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        total += math.exp(log_term + k * log_p + (n - k) * log_q)
        if total >= probability * (1 - 1e-12):
            return k
    return n


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
