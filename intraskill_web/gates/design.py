"""What the masks of a gate say about its design: balance of every pair, and its condition. Pure.

Two slots are drawn independently, so the number of rollouts that show both of two versions is known
beforehand up to chance; a pair that is met far too often or too seldom is a fault of the draw and
confounds two effects. The condition number says how far the columns can be told apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class SlotLike(Protocol):
    """A slot's versions; it shows one of them or none, each with the same probability."""

    @property
    def versions(self) -> tuple[str, ...]: ...


def facts(
    masks: NDArray[np.float64], columns: Sequence[str], slots: Sequence[SlotLike]
) -> dict[str, Any]:
    """Condition number, and the least likely pair of versions of different slots.

    ``masks`` is (rollouts, columns) of 0 and 1. ``pair_p`` is the smallest two-sided p (normal
    approximation) over ``pairs`` pairs, None where there is no pair.
    """
    share = {version: 1 / (len(s.versions) + 1) for s in slots for version in s.versions}
    slot_of = {version: i for i, s in enumerate(slots) for version in s.versions}
    together = masks.T @ masks
    n = len(masks)
    worst: tuple[float, list[str]] | None = None
    pairs = 0
    for i, first in enumerate(columns):
        for j in range(i + 1, len(columns)):
            second = columns[j]
            if slot_of[first] == slot_of[second]:
                continue
            pairs += 1
            chance = share[first] * share[second]
            z = (together[i, j] - n * chance) / math.sqrt(n * chance * (1 - chance))
            p = math.erfc(abs(z) / math.sqrt(2))
            if worst is None or p < worst[0]:
                worst = (p, [first, second])
    return {
        "condition_number": float(np.linalg.cond(masks)),
        "pairs": pairs,
        "pair_p": worst[0] if worst else None,
        "pair": worst[1] if worst else [],
    }
