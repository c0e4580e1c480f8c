"""Where episodes hold the words of a search, reading as little of each as that takes.

The row itself has the episode's id and its task. Then only what was said is read, which bodies hold
apart; those of older packs, and traces that lie in their files alone, are read and parsed whole.
"""

from __future__ import annotations

from intraskill_web.episodes import bodies
from intraskill_web.episodes.content import Saying, sayings
from intraskill_web.episodes.listed import Listed
from intraskill_web.episodes.pieces import opened, sayings_from
from intraskill_web.episodes.traces import read_body, trace_of
from intraskill_web.episodes.words import Hit, Words
from trainer.errors import InputError


class Glance:
    """Looks for some words in one episode after the other."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self._packs = bodies.Packs()

    def __enter__(self) -> Glance:
        return self

    def __exit__(self, *_: object) -> None:
        self._packs.__exit__()

    def hit(self, row: Listed) -> Hit | None:
        """Where the episode holds the words; None when it does not or its trace is gone."""
        words = self.words
        if words.may_begin(row.instruction) or words.may_begin(row.episode_id):
            at_hand = (Saying(0, "id", row.episode_id), Saying(0, "task", row.instruction))
            if (found := words.hit(at_hand)) is not None:
                return found
        try:
            if texts := self._texts(row):
                index, said = opened(texts)
                first = words.none_before(said)
                return None if first is None else words.hit(sayings_from(index, said, first))
        except (OSError, ValueError, LookupError):
            pass  # gone or damaged; the file may still have it
        try:
            return words.hit(sayings(trace_of(row, read_body(row, self._packs.read))))
        except InputError:
            return None

    def _texts(self, row: Listed) -> bytes:
        """What was said, where the body holds it apart. Raises OSError."""
        if row.pack is None:
            return b""
        return self._packs.texts(bodies.Place(row.pack, row.body_at, row.body_size))
