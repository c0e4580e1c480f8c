"""Searching a log: lines that hold a text, or that are of a level and worse, forward from a byte.

The file is read in pieces and never held; an answer ends after MATCHES lines or SCAN bytes and says
where to go on. Case does not matter. Colours inside a line do not hide what it says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from intraskill_web.monitoring.attempts.logs import (
    LogLine,
    LogPart,
    Span,
    newlines_before,
    parse_line,
    worse,
)

PIECE = 1024 * 1024
MATCHES = 500
SCAN = 64 * 1024 * 1024
LONGEST = 200  # characters of a text that is looked for
LOUD = re.compile(rb"WARN|ERROR|CRITICAL|Traceback|Error|Exception")
COLOUR = re.compile(rb"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Found(LogPart):
    """The lines that matched; ``full`` when there may be more beyond ``next``."""

    full: bool = False


def search_log(
    path: Path, start: int, *, text: str = "", level: str = "", over: bool = False
) -> Found:
    """Lines from byte ``start`` on that hold ``text`` and are of ``level`` or worse.

    A missing file is an empty log. The matches are marked in the spans. An unfinished last line
    counts only when nobody writes any more (``over``).
    """
    text = text[:LONGEST]
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return Found([], 0, 0, 0)
    start = max(0, min(start, size))
    number = newlines_before(path, start)
    wanted = text.casefold().encode()
    found: list[LogLine] = []
    end = start
    for offset, raw in _raw_lines(path, start, min(size, start + SCAN), over=over):
        end = min(size, offset + len(raw) + 1)
        number = None if number is None else number + 1
        if not raw or not _promising(raw, wanted, level):
            continue
        line = parse_line(raw, offset, number)
        if not worse(line.level, level):
            continue
        marked = mark(line, text) if text else line
        if marked is None:
            continue
        found.append(marked)
        if len(found) == MATCHES:
            break
    return Found(found, start, end, size, full=end < size)


def mark(line: LogLine, text: str) -> LogLine | None:
    """The line with ``text`` marked wherever it stands; None when it does not."""
    plain = line.text
    wanted = re.compile(re.escape(text), re.IGNORECASE)
    places = [match.span() for match in wanted.finditer(plain)]
    if not places:
        return line if wanted.search(f"{line.time} {line.level}") else None
    cuts = sorted({0, len(plain), *(end for place in places for end in place)})
    spans: list[Span] = []
    begin = 0
    for span in line.spans:
        stop = begin + len(span.text)
        inner = [begin, *(cut for cut in cuts if begin < cut < stop), stop]
        for a, b in pairwise(inner):
            hit = any(first <= a and b <= last for first, last in places)
            spans.append(Span(plain[a:b], span.css, hit))
        begin = stop
    return replace(line, spans=tuple(spans))


def count_levels(path: Path, limit: int = 8 * PIECE) -> dict[str, int] | None:
    """How many lines warn and how many tell an error; None where the log is longer than ``limit``
    bytes.
    """
    try:
        if path.stat().st_size > limit:
            return None
    except FileNotFoundError:
        return {"warn": 0, "error": 0}
    counts = {"warn": 0, "error": 0}
    for offset, raw in _raw_lines(path, 0, limit, over=True):
        if LOUD.search(raw):
            level = parse_line(raw, offset).level
            if level in counts:
                counts[level] += 1
    return counts


def _promising(raw: bytes, wanted: bytes, level: str) -> bool:
    """A cheap look before the line is parsed; may say yes too often, never no wrongly."""
    if level in ("warn", "error") and not LOUD.search(raw):
        return False
    if not wanted:
        return True
    plain = COLOUR.sub(b"", raw) if b"\x1b" in raw else raw
    if plain.isascii() and wanted.isascii():
        return wanted in plain.lower()
    return wanted.decode() in plain.decode("utf-8", errors="replace").casefold()


def _raw_lines(
    path: Path, start: int, stop: int, *, over: bool = False
) -> Iterator[tuple[int, bytes]]:
    """(byte offset, line without its end) of the whole lines between two bytes; with ``over`` also
    of a last one without an end.
    """
    offset, rest = start, b""
    with path.open("rb") as handle:
        handle.seek(start)
        while offset + len(rest) < stop and (piece := handle.read(PIECE)):
            *lines, rest = (rest + piece).split(b"\n")
            for raw in lines:
                yield offset, raw
                offset += len(raw) + 1
                if offset >= stop:
                    return
            if len(rest) > PIECE:  # a line without an end: show what there is
                yield offset, rest
                offset, rest = offset + len(rest), b""
    if over and rest:
        yield offset, rest
