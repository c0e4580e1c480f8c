"""Where episodes hold the words of a search, reading as little of each as that takes.

A body is cut into its parts without building what is in them; of its steps only those are parsed
whose bytes may hold a word. What a reading of the whole finds, this finds at the same place; bodies
that cannot be cut are read whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec
import orjson

from intraskill_web.episodes import bodies
from intraskill_web.episodes.content import Saying, said_after, said_before, said_in, sayings
from intraskill_web.episodes.listed import Listed
from intraskill_web.episodes.traces import read_body, trace_of
from intraskill_web.episodes.words import Hit, Words
from trainer.errors import InputError

NULL = msgspec.Raw(b"null")


class _Parts(msgspec.Struct):
    """The parts of a trace that say something, as they are written."""

    episode_id: msgspec.Raw = NULL
    reset: msgspec.Raw = NULL
    steps: list[msgspec.Raw] = []
    final: msgspec.Raw = NULL
    error: msgspec.Raw = NULL


_parts = msgspec.json.Decoder(_Parts)
# msgspec's and orjson's errors are both of the first kind
NotCut = (ValueError, RecursionError)


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
            body = read_body(row, self._packs.read)
            if not (words.certain or words.may_be_in(body)):
                return None
            try:
                return words.hit(some_sayings(body, words))
            except NotCut:
                return words.hit(sayings(trace_of(row, body)))
        except InputError:
            return None


def some_sayings(body: bytes, words: Words) -> Iterator[Saying]:
    """The sayings of a trace, without turns that hold none of the words. Raises NotCut."""
    parts, may = _parts.decode(body), words.one_may_be_in
    if may(bytes(parts.reset)) or may(bytes(parts.episode_id)):
        yield from said_before(_value(parts.episode_id), _value(parts.reset))
    pieces = _steps_and_end(parts)
    step, here, turn = next(pieces), None, 0
    for turn, following in enumerate(pieces, 1):
        here = may(step) if here is None else here
        there = None if here else may(following)
        if here or there:  # what followed may be what answered the step
            yield from said_in(turn, orjson.loads(step), partial(orjson.loads, following))
        step, here = following, there
    yield from said_after(turn, _value(parts.error))


def _steps_and_end(parts: _Parts) -> Iterator[bytes]:
    """The steps, and behind them the end; what is no object is no step."""
    for raw in parts.steps:
        if (step := bytes(raw)).startswith(b"{"):
            yield step
    yield bytes(parts.final)


def _value(part: msgspec.Raw | bytes) -> Any:
    return orjson.loads(memoryview(part))
