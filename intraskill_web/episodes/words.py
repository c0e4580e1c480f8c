"""What was typed into the search box: words, each a piece of text that an episode must hold. Pure.

Blanks separate words; quotes keep them together. Case does not matter. A word is found wherever it
stands, inside other words too, in any language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from intraskill_web.episodes.content import Saying
from intraskill_web.episodes.grams import required
from intraskill_web.episodes.terms import Terms

WORD = re.compile(r'"([^"]+)"?|(\S+)')
HAN = "\u3400-\u4dbf\u4e00-\u9fff"
# Words that a JSON string spells as they are, but for the case of ASCII letters.
PLAIN = re.compile(rf"[ !#-\[\]-~{HAN}]+")
# Words of characters that have no other case and are the lower case of no other.
CASELESS = re.compile(rf"[ !#-@\[\]-`{{-~{HAN}]+")
OTHERWISE = {"k": "\u212a".encode(), "i": "\u0130".encode()}  # whose lower case begins so
BLANKS = re.compile(r"\s+")
AROUND = 60  # characters shown before and after a hit
MOST = 12  # words of one search


class Hit(NamedTuple):
    """The first place that holds the first word: turn, who said it, and the text around it."""

    turn: int
    role: str
    before: str
    match: str
    after: str


@dataclass(frozen=True)
class Words:
    """The words of one search, lowered."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Words:
        """The words of what was typed."""
        found = (a or b for a, b in WORD.findall(text))
        return cls(tuple(word.lower() for word in found)[:MOST])

    def __bool__(self) -> bool:
        return bool(self.words)

    def terms(self) -> Terms:
        """What the index row of a match must have; nothing where no word is long enough."""
        wanted = dict.fromkeys(term for word in self.words for term in required(word))
        return Terms(text=tuple(wanted))

    @cached_property
    def certain(self) -> bool:
        """Whether the index alone decides: every word is one term, whole."""
        return all(required(word) == [word] for word in self.words)

    def none_before(self, said: bytes) -> int | None:
        """The byte of some JSON strings before which none of the words stands.

        None when one of them stands nowhere; 0 when in doubt.
        """
        if len(self._plain) < len(self.words):
            return 0
        if any(map(said.__contains__, self._odd)):
            return 0
        first = min(map((said if self._caseless else said.lower()).find, self._plain))
        return first if first >= 0 else None

    def may_begin(self, text: str) -> bool:
        """Whether ``text`` may hold the first word."""
        return not self._caseless or self.words[0] in text

    @cached_property
    def _plain(self) -> list[bytes]:
        return [word.encode() for word in self.words if PLAIN.fullmatch(word)]

    @cached_property
    def _odd(self) -> list[bytes]:
        """Letters that a word may be spelled with, and that only Unicode lowers."""
        letters = "".join(self.words)
        return [sign for letter, sign in OTHERWISE.items() if letter in letters]

    @cached_property
    def _caseless(self) -> bool:
        return all(map(CASELESS.fullmatch, self.words))

    def hit(self, said: Iterable[Saying]) -> Hit | None:
        """Where an episode holds the words; None when one of them is missing."""
        wanted, hit = set(self.words), None
        for saying in said:
            text = saying.text if self._caseless else saying.text.lower()
            for word in self.words:
                if word in wanted and (at := text.find(word)) >= 0:
                    wanted.discard(word)
                    if word == self.words[0]:
                        hit = _shown(saying, at, len(word))
            if not wanted:
                return hit
        return None


def _shown(saying: Saying, at: int, length: int) -> Hit:
    """The hit in its own spelling; where lowering moved characters, as near as that allows."""
    text, begin, end = saying.text, max(0, at - AROUND), at + length + AROUND
    before, match, after = text[begin:at], text[at : at + length], text[at + length : end]
    around = text[begin:end]
    if not around.isprintable() or "  " in around:  # a plain blank is the only one that prints
        before, match, after = (BLANKS.sub(" ", part) for part in (before, match, after))
    if begin:
        before = "…" + before
    return Hit(saying.turn, saying.role, before, match, after + "…" if end < len(text) else after)
