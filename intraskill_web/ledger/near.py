"""Near-duplicate texts: which candidates say almost what another one says. Pure.

Texts are compared by their sets of four-character pieces (spaces and case do not count), which
works for Chinese as for English. The measure is the Jaccard index: shared pieces over all pieces.
"""

from __future__ import annotations

from collections.abc import Mapping

NEAR = 0.5
PIECE = 4


def pieces(text: str) -> frozenset[str]:
    """The four-character pieces of a text."""
    plain = "".join(text.lower().split())
    return frozenset(plain[i : i + PIECE] for i in range(max(len(plain) - PIECE + 1, 0)))


def similarity(a: frozenset[str], b: frozenset[str]) -> float:
    """Between 0 (nothing shared) and 1 (the same pieces); empty texts are like nothing."""
    return len(a & b) / len(a | b) if a and b else 0.0


def nearest(texts: Mapping[int, str]) -> dict[int, tuple[int, float]]:
    """For each text the other one that is most like it, where that is at least ``NEAR``."""
    sets = {key: pieces(text) for key, text in texts.items()}
    found: dict[int, tuple[int, float]] = {}
    keys = sorted(sets)
    for place, a in enumerate(keys):
        for b in keys[place + 1 :]:
            value = similarity(sets[a], sets[b])
            if value < NEAR:
                continue
            for one, other in ((a, b), (b, a)):
                if one not in found or value > found[one][1]:
                    found[one] = (other, value)
    return found
