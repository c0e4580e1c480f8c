"""Bootstrap intervals of a mean task difference.

``published_interval`` reproduces the published convention to the last bit: percentile interval over
10,000 resamples whose indices come from Python's generator, seeded by the metric's name. Two
metrics with equal data therefore get slightly different intervals; ``bca_interval`` draws the same
tasks for all metrics and corrects bias and skewness (Efron 1987). Specification: gate-analysis.md
§13.
"""

from __future__ import annotations

import hashlib
import random

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]
RESAMPLES = 10_000
BLOCK = 1000  # resamples whose indices are held at once
SEED = 20260901
LEVEL = 0.95


def published_interval(
    differences: Array, metric: str, *, seed: int = SEED, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """Percentile interval of the mean; ``metric`` names the random stream."""
    digest = hashlib.sha256(f"{seed}:{metric}".encode()).digest()
    n = len(differences)
    stream = RandrangeStream(int.from_bytes(digest[:8], "big"), n)
    blocks = [
        resampled_means(differences, stream.take(count * n).reshape(count, n))
        for count in block_sizes(resamples)
    ]
    means = np.sort(np.concatenate(blocks))
    tail = (1 - LEVEL) / 2
    return percentile(means, tail), percentile(means, 1 - tail)


def block_sizes(resamples: int) -> list[int]:
    """The resamples in blocks whose indices fit into memory, however many tasks there are."""
    whole, rest = divmod(resamples, BLOCK)
    return [BLOCK] * whole + [rest] * (rest > 0)


class RandrangeStream:
    """What one call after another of ``random.Random(seed).randrange(n)`` returns.

    ``randrange`` takes the top bits of 32-bit words of the Mersenne Twister and draws again while
    the value is not below n; numpy runs the same generator from the same state much faster.
    """

    def __init__(self, seed: int, n: int) -> None:
        state = random.Random(seed).getstate()[1]
        self._generator = np.random.MT19937()
        self._generator.state = {
            "bit_generator": "MT19937",
            "state": {"key": np.array(state[:-1], dtype=np.uint32), "pos": state[-1]},
        }
        self._n = n
        self._shift = np.uint64(32 - n.bit_length())
        self._ahead: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def take(self, count: int) -> NDArray[np.int64]:
        """The next ``count`` values."""
        kept = [self._ahead]
        missing = count - len(self._ahead)
        while missing > 0:
            words = self._generator.random_raw(2 * missing + 64)
            values = (words >> self._shift).astype(np.int64)
            kept.append(values[values < self._n])
            missing -= len(kept[-1])
        drawn = np.concatenate(kept)
        self._ahead = drawn[count:]
        return drawn[:count]


def resampled_means(differences: Array, indices: NDArray[np.int64]) -> Array:
    """Mean of each resample, summed with Neumaier's compensation as Python's ``sum`` does.

    Sums of whole numbers are exact in any order. Otherwise the error of each addition is found by
    Knuth's branch-free two-sum, which gives the same (exact) error as Neumaier's comparison.
    """
    n = indices.shape[1]
    if np.array_equal(differences, np.rint(differences)) and np.abs(differences).sum() < 2**53:
        return np.asarray(differences[indices].sum(axis=1) / n)
    terms = differences[np.ascontiguousarray(indices.T)]
    total = np.zeros(len(indices))
    lost = np.zeros(len(indices))
    for term in terms:
        following = total + term
        added = following - total
        total -= following - added
        total += term - added
        lost += total
        total = following
    return np.asarray((total + lost) / n)


def percentile(ordered: Array, p: float) -> float:
    """Linear interpolation at p·(N-1) of sorted values."""
    position = p * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    weight = position - below
    return float(ordered[below] * (1 - weight) + ordered[above] * weight)


def bca_interval(differences: Array) -> tuple[float, float]:
    """Bias-corrected and accelerated interval of the mean; a point for constant differences."""
    n = len(differences)
    mean = float(differences.mean())
    if n < 2 or float(np.ptp(differences)) == 0.0:
        return mean, mean
    rng = np.random.default_rng(SEED)  # the same tasks for every metric of a comparison
    blocks = [
        differences[rng.integers(0, n, (count, n))].mean(axis=1) for count in block_sizes(RESAMPLES)
    ]
    means = np.sort(np.concatenate(blocks))
    below = (np.sum(means < mean) + 0.5 * np.sum(means == mean)) / len(means)
    bias = special.ndtri(np.clip(below, 1 / len(means), 1 - 1 / len(means)))
    jackknife = (differences.sum() - differences) / (n - 1)
    away = jackknife.mean() - jackknife
    acceleration = np.sum(away**3) / (6.0 * np.sum(away**2) ** 1.5)
    ends = []
    for z in special.ndtri([(1 - LEVEL) / 2, (1 + LEVEL) / 2]):
        shifted = bias + (bias + z) / (1 - acceleration * (bias + z))
        ends.append(percentile(means, float(special.ndtr(shifted))))
    return ends[0], ends[1]
