"""Bootstrap intervals of a mean task difference.

``published_interval`` reproduces the published convention to the last bit: percentile interval over
10,000 resamples whose indices come from Python's generator, seeded by the metric's name. Two
metrics with equal data therefore get slightly different intervals; ``bca_interval`` uses one index
matrix for all metrics and corrects bias and skewness (Efron 1987). Specification: gate-analysis.md
§13.
"""

from __future__ import annotations

import hashlib
import random
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]
RESAMPLES = 10_000
SEED = 20260901
LEVEL = 0.95


def published_interval(
    differences: Array, metric: str, *, seed: int = SEED, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """Percentile interval of the mean; ``metric`` names the random stream."""
    digest = hashlib.sha256(f"{seed}:{metric}".encode()).digest()
    n = len(differences)
    indices = randrange_stream(int.from_bytes(digest[:8], "big"), n, resamples * n)
    means = np.sort(resampled_means(differences, indices.reshape(resamples, n)))
    tail = (1 - LEVEL) / 2
    return percentile(means, tail), percentile(means, 1 - tail)


def randrange_stream(seed: int, n: int, count: int) -> NDArray[np.int64]:
    """What ``count`` calls of ``random.Random(seed).randrange(n)`` return.

    ``randrange`` takes the top bits of 32-bit words of the Mersenne Twister and draws again while
    the value is not below n; numpy runs the same generator from the same state much faster.
    """
    state = random.Random(seed).getstate()[1]
    generator = np.random.MT19937()
    generator.state = {
        "bit_generator": "MT19937",
        "state": {"key": np.array(state[:-1], dtype=np.uint32), "pos": state[-1]},
    }
    shift = np.uint64(32 - n.bit_length())
    kept: list[NDArray[np.int64]] = []
    missing = count
    while missing > 0:
        values = (generator.random_raw(2 * missing + 64) >> shift).astype(np.int64)
        values = values[values < n][:missing]
        kept.append(values)
        missing -= len(values)
    return np.concatenate(kept)


def resampled_means(differences: Array, indices: NDArray[np.int64]) -> Array:
    """Mean of each resample, summed with Neumaier's compensation as Python's ``sum`` does."""
    total = np.zeros(len(indices))
    lost = np.zeros(len(indices))
    for column in indices.T:
        term = differences[column]
        following = total + term
        larger = np.abs(total) >= np.abs(term)
        lost += np.where(larger, (total - following) + term, (term - following) + total)
        total = following
    return np.asarray((total + lost) / indices.shape[1])


def percentile(ordered: Array, p: float) -> float:
    """Linear interpolation at p·(N-1) of sorted values."""
    position = p * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    weight = position - below
    return float(ordered[below] * (1 - weight) + ordered[above] * weight)


@lru_cache(maxsize=4)
def index_matrix(n: int, resamples: int = RESAMPLES, seed: int = SEED) -> NDArray[np.int64]:
    """Indices (resamples, n) that every metric of a comparison shares."""
    return np.random.default_rng(seed).integers(0, n, (resamples, n))


def bca_interval(differences: Array) -> tuple[float, float]:
    """Bias-corrected and accelerated interval of the mean; a point for constant differences."""
    n = len(differences)
    mean = float(differences.mean())
    if n < 2 or float(np.ptp(differences)) == 0.0:
        return mean, mean
    means = np.sort(differences[index_matrix(n)].mean(axis=1))
    below = (np.sum(means < mean) + 0.5 * np.sum(means == mean)) / len(means)
    bias = stats.norm.ppf(below)
    jackknife = (differences.sum() - differences) / (n - 1)
    away = jackknife.mean() - jackknife
    acceleration = np.sum(away**3) / (6.0 * np.sum(away**2) ** 1.5)
    ends = []
    for z in stats.norm.ppf([(1 - LEVEL) / 2, (1 + LEVEL) / 2]):
        shifted = bias + (bias + z) / (1 - acceleration * (bias + z))
        ends.append(percentile(means, float(stats.norm.cdf(shifted))))
    return ends[0], ends[1]
