"""Random numbers that belong to an episode, not to a batch.

The noise for one sampled token is a function of (noise key, turn, token, word) and of nothing else:
a SplitMix64 stream over the words, started at SHA-256 of the first three. Batches may be cut,
ordered, compacted and resumed in any way; an episode sees the same numbers, and arms that share
keys share luck. Adding Gumbel noise to log-probabilities and taking the largest is exact sampling.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def stream_start(noise_key: str, turn: int, token: int) -> int:
    """Where the stream of one sampled token starts: the first 64 bits of a SHA-256."""
    digest = hashlib.sha256(f"{noise_key}:{turn}:{token}".encode()).digest()
    return int.from_bytes(digest[:8], "big")


def uniform(starts: Sequence[int], words: int) -> NDArray[np.float64]:
    """Uniform numbers in (0, 1), one row [words] for each stream start."""
    state = np.arange(1, words + 1, dtype=np.uint64) * _STEP
    mixed: NDArray[np.uint64] = np.array(starts, dtype=np.uint64)[:, None] + state
    mixed ^= mixed >> np.uint64(30)
    mixed *= _FIRST
    mixed ^= mixed >> np.uint64(27)
    mixed *= _SECOND
    mixed ^= mixed >> np.uint64(31)
    mixed >>= np.uint64(11)
    return (mixed.astype(np.float64) + 0.5) * 2.0**-53


def gumbel(starts: Sequence[int], words: int) -> NDArray[np.float32]:
    """Standard Gumbel noise, one row [words] for each stream start."""
    noise = uniform(starts, words)
    for _ in range(2):  # -log(-log(u))
        np.log(noise, out=noise)
        np.negative(noise, out=noise)
    return noise.astype(np.float32)
