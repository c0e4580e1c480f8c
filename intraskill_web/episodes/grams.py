"""Text → index terms, and a search word → the terms that any text holding it must have. Pure.

A text is lowered and cut into runs of one kind: ASCII letters, digits, other word characters (Han
among them). Every three letters, four digits or two other characters in a row are a term. So each
substring of that length or more, in any language, can be asked for, and two Chinese characters are
one term. Terms say what may match; the text of a candidate decides (``search.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

RUN = re.compile(r"[a-z]+|[0-9]+|[^\W\x00-\x7f]+")
LETTERS, DIGITS, OTHER = 3, 4, 2
DIGITS_END, FIRST_OTHER = ":", "\x80"
MARK = "\u00a4"  # begins terms that are no text; no word character, so no text makes one
TOO_BIG = f"{MARK}big"
MAX_TERMS = 40_000
MAX_TEXT = 2_000_000  # characters
_CACHE_SIZE = 100_000


class _Pieces(dict[str, str]):
    """The terms of a run; most runs come again, in words and in titles of products."""

    def __missing__(self, run: str) -> str:
        pieces = " ".join(_cut(run))
        if len(run) < 32:
            if len(self) >= _CACHE_SIZE:
                self.clear()
            self[run] = pieces
        return pieces


_pieces = _Pieces()


def terms(texts: Iterable[str]) -> str:
    """The terms of all ``texts``, with blanks between; beyond the limits only the mark for that.

    A term may stand there twice: the databases drop the second at less cost than a set here.
    """
    text = "\n".join(texts)
    if len(text) > MAX_TEXT:
        return TOO_BIG
    found = " ".join(filter(None, map(_pieces.__getitem__, set(RUN.findall(text.lower())))))
    if found.count(" ") < MAX_TERMS:
        return found
    unique = set(found.split(" "))
    return TOO_BIG if len(unique) > MAX_TERMS else " ".join(unique)


def required(word: str) -> list[str]:
    """Terms that every text holding ``word`` has; none for a word too short to be indexed."""
    wanted: dict[str, None] = {}
    for run in RUN.findall(word.lower()):
        wanted.update(dict.fromkeys(_cut(run)))
    return list(wanted)


def _cut(run: str) -> list[str]:
    size = OTHER if run >= FIRST_OTHER else DIGITS if run < DIGITS_END else LETTERS
    return [run[i : i + size] for i in range(len(run) - size + 1)]
