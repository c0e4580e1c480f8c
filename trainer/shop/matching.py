"""The fuzzy ratio that compares option values and attributes (environment.md §4.4).

Both texts become sets of words; the ratio is the best of three character similarities, rounded to
whole percent. ``matches`` answers "ratio > 85" and is exact; it only skips work whose outcome is
certain.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

THRESHOLD = 85
#: round(x) > 85 holds from 85.5 on (Python rounds that half to the even 86).
_LEAST = 85.5 / 100

_NOT_WORD = re.compile(r"\W+")


class _Words(NamedTuple):
    words: frozenset[str]
    joined: str
    letters: frozenset[str]


@lru_cache(maxsize=1 << 16)
def _words(text: str) -> _Words:
    words = frozenset(_NOT_WORD.sub(" ", text.casefold()).split())
    joined = " ".join(sorted(words))
    return _Words(words, joined, frozenset(joined))


def _percent(left: str, right: str) -> int:
    return round(100 * SequenceMatcher(None, left, right).ratio())


def ratio(purchased: str, required: str) -> int:
    """Similarity in percent, 0–100. Texts without a word character are equal to each other."""
    a, b = _words(purchased), _words(required)
    shared = a.words & b.words
    if not shared:
        return _percent(a.joined, b.joined)
    common = " ".join(sorted(shared))
    return max(_percent(common, a.joined), _percent(common, b.joined), _percent(a.joined, b.joined))


@lru_cache(maxsize=1 << 16)
def matches(purchased: str, required: str) -> bool:
    """``ratio(purchased, required) > 85``."""
    a, b = _words(purchased), _words(required)
    if a.words == b.words:
        return True
    shared = a.words & b.words
    if not shared:
        return _could_match(a, b) and _percent(a.joined, b.joined) > THRESHOLD
    if len(shared) in (len(a.words), len(b.words)):
        return True
    return ratio(purchased, required) > THRESHOLD


def _could_match(a: _Words, b: _Words) -> bool:
    """False when lengths or letters in common already rule a ratio of 85.5 % out."""
    left, right = a.joined, b.joined
    least = _LEAST * (len(left) + len(right)) / 2
    if min(len(left), len(right)) < least:
        return False
    shared = a.letters & b.letters
    return (
        sum(map(shared.__contains__, left)) >= least
        and sum(map(shared.__contains__, right)) >= least
    )
