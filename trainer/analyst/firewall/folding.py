"""Texts in the form in which they are compared: width, case, accents and spacing taken away.

``Folded`` is made once a text. Two views serve two kinds of writing: ``words`` for scripts that put
spaces between words, ``letters`` (everything joined) for those that do not.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

#: letters of other scripts that look like Latin ones
_LOOKALIKES = str.maketrans("аеорсухіјѕԁԛԝαορν", "aeopcyxijsdqwaopv")
_POSSESSIVE = re.compile(r"['’ʼ](s|m|d|t|re|ve|ll)\b")
_HAN_RANGES = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_HAN = re.compile(f"[{_HAN_RANGES}]")
#: runs of one script: a Latin name inside a Han sentence is a word of its own
_WORD = re.compile(rf"[{_HAN_RANGES}]+|[^\W_{_HAN_RANGES}]+")


def fold(text: str) -> str:
    """NFKC, case folded, without accents and invisible characters, look-alikes as Latin letters."""
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    kept = (
        c for c in decomposed if unicodedata.category(c) not in ("Cf", "Mn", "Cc") or c in "\n\t"
    )
    return unicodedata.normalize("NFKC", "".join(kept)).translate(_LOOKALIKES)


def _is_invisible(char: str) -> bool:
    return unicodedata.category(char) in ("Cf", "Mn", "Cc")


def is_han(text: str) -> bool:
    """Whether the text is written without spaces between words."""
    return _HAN.search(text) is not None


@dataclass(frozen=True, slots=True)
class Folded:
    """A text folded once. ``words`` are runs of letters and digits, ``letters`` all of them joined;
    ``starts`` are the places in ``letters`` where a word begins, its end included."""

    text: str
    words: tuple[str, ...]
    letters: str
    starts: frozenset[int]

    @classmethod
    def of(cls, text: str) -> Folded:
        folded = fold(text)
        words = tuple(_WORD.findall(_POSSESSIVE.sub(" ", folded)))
        starts, place = [], 0
        for word in words:
            starts.append(place)
            place += len(word)
        return cls(folded, words, "".join(words), frozenset((*starts, place)))

    def contains(self, entry: str) -> bool:
        """Whether ``entry`` (already joined letters) occurs: anywhere when it is Han, else only
        from the beginning of a word to the end of one, spaces within not counted."""
        if not entry:
            return False
        if is_han(entry):
            return entry in self.letters
        place = self.letters.find(entry)
        while place >= 0:
            if place in self.starts and place + len(entry) in self.starts:
                return True
            place = self.letters.find(entry, place + 1)
        return False


@lru_cache(maxsize=1 << 16)
def letters_of(text: str) -> str:
    """The joined letters of a name or value, as ``Folded.contains`` takes them."""
    return "".join(_WORD.findall(fold(text)))
