"""What was typed into the search box: words, each a piece of text that an episode must hold. Pure.

Blanks separate words; quotes keep them together. Case does not matter. A word is found wherever it
stands, inside other words too, in any language.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from intraskill_web.episodes.content import Saying
from intraskill_web.episodes.grams import required
from intraskill_web.episodes.terms import Terms

WORD = re.compile(r'"([^"]+)"?|(\S+)')
# Words that stand in the JSON of a trace as they are spelled, in either case: they lie in no joint
# of two texts, have no escapes, and are no part of a number, which Python may write otherwise.
PLAIN = re.compile(r"(?=.*[a-df-z_\u3400-\u9fff])[a-z0-9_\u3400-\u4dbf\u4e00-\u9fff-]+")
NUMBER = "infinity"
# Words of characters that have no other case and are the lower case of no other.
CASELESS = re.compile(r"[0-9_\u3400-\u4dbf\u4e00-\u9fff-]+")
ESCAPED = b"\\u"
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

    def may_be_in(self, body: bytes) -> bool:
        """Whether the JSON of a trace may hold all words: quick, and True when in doubt."""
        lowered = body if self._caseless else body.lower()
        return all(map(lowered.__contains__, self._plain)) or any(map(body.__contains__, self._odd))

    @cached_property
    def one_may_be_in(self) -> Callable[[bytes], bool]:
        """Whether JSON may hold one of the words: quicker, and True when in doubt."""
        plain, odd, caseless = self._plain, self._odd, self._caseless
        if len(plain) < len(self.words):
            return lambda part: True
        if caseless and len(plain) == 1:
            (word,) = plain
            return lambda part: word in part or ESCAPED in part

        def may(part: bytes) -> bool:
            lowered = part if caseless else part.lower()
            return any(word in lowered for word in plain) or any(sign in part for sign in odd)

        return may

    def may_begin(self, text: str) -> bool:
        """Whether ``text`` may hold the first word."""
        return not self._caseless or self.words[0] in text

    @cached_property
    def _plain(self) -> list[bytes]:
        """The words that stand in JSON as they are spelled."""
        return [w.encode() for w in self.words if PLAIN.fullmatch(w) and w not in NUMBER]

    @cached_property
    def _odd(self) -> list[bytes]:
        """What bytes have that may say a plain word otherwise: escapes, letters that lower."""
        letters = "".join(self.words)
        return [ESCAPED, *(sign for letter, sign in OTHERWISE.items() if letter in letters)]

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
    text, begin = saying.text, max(0, at - AROUND)
    end = at + length + AROUND
    return Hit(
        turn=saying.turn,
        role=saying.role,
        before=("…" if begin else "") + _line(text[begin:at]),
        match=_line(text[at : at + length]),
        after=_line(text[at + length : end]) + ("…" if end < len(text) else ""),
    )


def _line(text: str) -> str:
    if text.isprintable() and "  " not in text:
        return text  # a plain blank is the only one that prints
    return BLANKS.sub(" ", text)
