"""Paraphrases that keep the letters: character n-grams shared with a long private field.

A field is compared by the n-grams that ordinary rules do not contain (``background.py``) and that
are not common among the catalogue's titles either. It counts as copied when the text holds most of
them, a long run of them in a row, or every telling word of it in any order. Short fields have no
n-grams to speak of; for those the exact rules stand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from trainer.analyst.firewall.background import is_ordinary, is_ordinary_gram
from trainer.analyst.firewall.folding import Folded, is_han, letters_of

HAN_GRAM, LATIN_GRAM = 3, 5
HAN_RUN, LATIN_RUN = 6, 12
SHARE = 0.5
FEWEST = 3
COMMON_SHARE = 0.05


def gram_size(text: str) -> int:
    """Characters of an n-gram: fewer where a character says more."""
    return HAN_GRAM if is_han(text) else LATIN_GRAM


def grams_of(text: str, size: int) -> list[str]:
    """The n-grams of joined letters, in order."""
    return [text[start : start + size] for start in range(len(text) - size + 1)]


def common_grams(titles: Iterable[str]) -> frozenset[str]:
    """N-grams of more than a twentieth of the titles: they identify nothing."""
    counts: Counter[str] = Counter()
    total = 0
    for title in titles:
        joined = letters_of(title)
        counts.update(set(grams_of(joined, gram_size(joined))))
        total += 1
    return frozenset(gram for gram, n in counts.items() if n > COMMON_SHARE * total and n > 2)


def copies(text: Folded, field: str, common: Collection[str]) -> bool:
    """Whether ``text`` holds most of ``field``, a long piece of it, or all of its words."""
    return _holds_every_word(text, field) or _holds_grams(text, letters_of(field), common)


def _holds_every_word(text: Folded, field: str) -> bool:
    """Even when they were shuffled and run together, which leaves no n-gram in place."""
    words = {word for word in Folded.of(field).words if len(word) > 2 and not is_ordinary(word)}
    return len(words) > 1 and all(word in text.letters for word in words)


def _holds_grams(text: Folded, joined: str, common: Collection[str]) -> bool:
    size = gram_size(joined)
    grams = grams_of(joined, size)
    telling = {gram for gram in grams if gram not in common and not is_ordinary_gram(gram)}
    if len(telling) < FEWEST:
        return False
    matched = {gram for gram in telling if gram in text.letters}
    if len(matched) >= FEWEST and len(matched) >= SHARE * len(telling):
        return True
    run = HAN_RUN if size == HAN_GRAM else LATIN_RUN
    return any(
        piece in text.letters and any(gram in piece for gram in telling)
        for piece in grams_of(joined, run)
    )
