"""Invented words that bring listings to the length and spread of real ones.

Real titles and attribute lists hold some 140 distinct tokens a product, most of them rare. For
benchmarks and load tests a vocabulary of invented Han words with Zipf frequencies is mixed in.
"""

from __future__ import annotations

import bisect
import itertools
import random
from typing import Any

_HAN = range(0x4E00, 0x4E00 + 3000)
_TITLE_WORDS = 4
_ATTRIBUTES = 12


class Filler:
    """Adds words to records. Deterministic by the generator's random numbers."""

    def __init__(self, size: int, rng: random.Random) -> None:
        self._rng = rng
        self._words = [
            "".join(chr(rng.choice(_HAN)) for _ in range(rng.choice((2, 2, 2, 3, 4))))
            for _ in range(size)
        ]
        self._cumulative = list(itertools.accumulate(1 / (rank + 8) for rank in range(size)))

    def _word(self) -> str:
        draw = self._rng.random() * self._cumulative[-1]
        return self._words[bisect.bisect_left(self._cumulative, draw)]

    def fill(self, record: dict[str, Any]) -> None:
        """Lengthen the title and the attribute list of ``record``."""
        record["title"] += "".join(self._word() for _ in range(_TITLE_WORDS))
        record["attribute"] += [
            f"{self._word()}：{self._word()}{self._word()}" for _ in range(_ATTRIBUTES)
        ]
