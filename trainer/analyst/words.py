"""Texts as words: for matching, for near-duplicates and for worlds that read single words."""

from __future__ import annotations

import re

_WORD = re.compile(r"[#$]?[a-z0-9]+")


def words_of(text: str) -> list[str]:
    """Lower-case words; punctuation and layout are dropped."""
    return _WORD.findall(text.casefold())
