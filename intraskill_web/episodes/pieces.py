"""A trace in two pieces: what was said in it, and the rest with a mark where each text stood. Pure.

Search reads the first piece alone, of which no trace has to be parsed. Both make the line again,
byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

import orjson

from intraskill_web.episodes.content import Saying

ROLES = ("id", "task", "persona", "thinking", "agent", "call", "shop", "error")  # by number
NUMBERS = {role: number for number, role in enumerate(ROLES)}
MARK = b"\0"  # stands in no JSON but UTF-16's and UTF-32's
SHORTEST = 32  # bytes of a text that is worth a mark
BEGINNING = 80  # bytes by which a text is found


def cut(line: bytes, said: Iterable[Saying]) -> tuple[bytes, bytes]:
    """The texts of ``line`` behind an index of them, and the rest of it.

    The texts are JSON strings, one behind the other; the index is a line of three numbers for each:
    turn, role, bytes. Halves of surrogate pairs become question marks, as on pages. What the line
    writes otherwise, or has twice, stays in the rest too. No line with a mark in it is cut: its
    texts are empty.
    """
    if MARK in line:
        return b"", line
    index: list[int] = []
    texts: list[bytes] = []
    found: list[tuple[int, int, int]] = []  # where a text stands, where it ends, which it is
    floor = ends = turn = 0
    for number, saying in enumerate(said):
        try:
            written = orjson.dumps(saying.text)
        except orjson.JSONEncodeError:
            written = orjson.dumps(saying.text.encode("utf-8", "replace").decode())
        texts.append(written)
        index += (saying.turn, NUMBERS[saying.role], len(written))
        if saying.turn != turn:
            turn, floor = saying.turn, ends
        if len(written) >= SHORTEST:
            at = line.find(written[:BEGINNING], floor)  # a long needle costs more to prepare
            if at >= 0 and line.startswith(written, at):
                found.append((at, at + len(written), number))
                ends = max(ends, at + len(written))
    pieces: list[bytes] = []
    end = 0
    for at, ends, number in sorted(found):
        if at >= end:
            pieces += (line[end:at], b"%d" % number)
            end = ends
    return orjson.dumps(index) + b"\n" + b"".join(texts), MARK.join((*pieces, line[end:]))


def joined(texts: bytes, rest: bytes) -> bytes:
    """The line whose pieces these are."""
    index, said = opened(texts)
    ends = [0, *accumulate(index[2::3])]
    pieces = rest.split(MARK)
    for place in range(1, len(pieces), 2):
        number = int(pieces[place])
        pieces[place] = said[ends[number] : ends[number + 1]]
    return b"".join(pieces)


def opened(texts: bytes) -> tuple[list[int], bytes]:
    """The index of texts, and the texts."""
    index, _, said = texts.partition(b"\n")
    return orjson.loads(index), said


def sayings_from(index: list[int], said: bytes, at: int) -> Iterator[Saying]:
    """What was said, without texts that end before byte ``at``."""
    end, numbers = 0, iter(index)
    for turn, role, size in zip(numbers, numbers, numbers, strict=True):
        end += size
        if end > at:
            yield Saying(turn, ROLES[role], orjson.loads(said[end - size : end]))
