"""Attempt logs by byte offset: never the whole file in memory, colours kept, the rest inert.

Lines are bytes of a process we do not trust. Control sequences except colours are removed, the
text is escaped by the template, and a line longer than LINE_LIMIT is cut with the number of bytes
left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

CHUNK = 64 * 1024  # bytes an answer
COUNTED = 64 * 1024 * 1024  # bytes in which lines are counted; further on they have no number
LINE_LIMIT = 4000
LEVELS = {
    "DEBUG": "debug",
    "INFO": "info",
    "WARN": "warn",
    "WARNING": "warn",
    "ERROR": "error",
    "CRITICAL": "error",
}
SGR = re.compile(r"\x1b\[([0-9;]*)m")
OTHER_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-ln-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])"
)
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f\u202a-\u202e\u2066-\u2069]")
LEVEL_WORD = re.compile(r"\b(DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL)\b")
LEADING_LEVEL = re.compile(r"^(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL)(?::\s*|\s+)")
FAULT = re.compile(r"Traceback \(most recent call last\)|^\w*(?:Error|Exception)\b[:( ]")
TIME = re.compile(r"^(?:\d{4}-\d\d-\d\d[T ])?(\d\d:\d\d:\d\d)(?:[.,]\d+)?\S*\s*")


@dataclass(frozen=True, slots=True)
class Span:
    """Text of one colour; ``css`` is a class or empty; ``hit`` marks what was looked for."""

    text: str
    css: str
    hit: bool = False


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line. ``offset`` is where it begins in the file and names it for ever; ``number`` is
    what people call it, from 1, or None far into a huge file. ``text`` has neither time nor level.
    """

    offset: int
    number: int | None
    time: str
    level: str
    spans: tuple[Span, ...]

    @property
    def text(self) -> str:
        """Without colours."""
        return "".join(span.text for span in self.spans)


@dataclass(frozen=True, slots=True)
class LogPart:
    """Whole lines from ``start``; ``next`` is where to go on, ``size`` the file's."""

    lines: list[LogLine]
    start: int
    next: int
    size: int

    @property
    def at_end(self) -> bool:
        """Whether nothing is left to read now."""
        return self.next >= self.size


def read_log(
    path: Path, start: int, *, level: str = "", limit: int = CHUNK, over: bool = False
) -> LogPart:
    """Whole lines from byte ``start``; an unfinished last line is left for later, unless nobody
    writes any more (``over``).

    ``level`` keeps lines of that level and worse. A missing file is an empty log.
    """
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return LogPart([], 0, 0, 0)
    start = max(0, min(start, size))
    with path.open("rb") as handle:
        handle.seek(start)
        data = handle.read(limit)
        first = _newlines(handle, start)
    end = data.rfind(b"\n") + 1
    if (end == 0 and len(data) == limit) or (over and start + len(data) >= size):
        end = len(data)  # a line longer than the chunk, or one that will never end
    lines = [line for line in _lines(data[:end], start, first) if worse(line.level, level)]
    return LogPart(lines, start, start + end, size)


def tail_start(path: Path, limit: int = CHUNK) -> int:
    """Where the last ``limit`` bytes begin, at the start of a line."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return 0
    if size <= limit:
        return 0
    with path.open("rb") as handle:
        handle.seek(size - limit)
        cut = handle.read(limit).find(b"\n")
    return size - limit + cut + 1 if cut >= 0 else size - limit


def is_fault(text: str) -> bool:
    """Whether a line tells an error by its looks, though it names no level."""
    return bool(FAULT.search(text))


def newlines_before(path: Path, start: int) -> int | None:
    """Lines that end before byte ``start``; None where counting them would take too long."""
    with path.open("rb") as handle:
        return _newlines(handle, start)


def worse(level: str, wanted: str) -> bool:
    """Whether ``level`` is ``wanted`` or worse; an empty wish keeps everything."""
    order = {"debug": 0, "info": 1, "": 1, "warn": 2, "error": 3}
    return not wanted or order.get(level, 1) >= order.get(wanted, 0)


def _newlines(handle: BinaryIO, before: int) -> int | None:
    """Lines that end before byte ``before``; None where counting them would take too long."""
    if before > COUNTED:
        return None
    handle.seek(0)
    found = 0
    while before > 0 and (piece := handle.read(min(CHUNK, before))):
        found += piece.count(b"\n")
        before -= len(piece)
    return found


def _lines(data: bytes, start: int, before: int | None) -> Iterator[LogLine]:
    """The lines of ``data``, which begins at byte ``start`` after ``before`` other lines."""
    offset = start
    for index, raw in enumerate(data.split(b"\n")):
        if raw:
            yield parse_line(raw, offset, None if before is None else before + index + 1)
        offset += len(raw) + 1


def parse_line(raw: bytes, offset: int, number: int | None = None) -> LogLine:
    """One line, made inert."""
    text = raw.decode("utf-8", errors="replace").rstrip("\r\n")
    text = text.rsplit("\r", 1)[-1]  # a progress bar rewrote its line: the last state counts
    text = CONTROLS.sub("", OTHER_ESCAPES.sub("", text))
    if len(text) > LINE_LIMIT:
        text = f"{text[:LINE_LIMIT]} … [{len(text) - LINE_LIMIT}]"
    plain = SGR.sub("", text)
    time = TIME.match(plain)
    if time and text.startswith(time.group(0)):
        text = text[len(time.group(0)) :]
    level = LEVEL_WORD.search(plain[:80])
    text = LEADING_LEVEL.sub("", text)
    name = LEVELS[level.group(1)] if level else ("error" if FAULT.search(plain) else "")
    return LogLine(offset, number, time.group(1) if time else "", name, tuple(_spans(text)))


def _spans(text: str) -> Iterator[Span]:
    css = ""
    position = 0
    for match in SGR.finditer(text):
        if match.start() > position:
            yield Span(text[position : match.start()], css)
        css = _colour(match.group(1), css)
        position = match.end()
    if position < len(text):
        yield Span(text[position:].replace("\x1b", ""), css)


def _colour(codes: str, css: str) -> str:
    """The class after a colour sequence: one foreground colour, bold apart."""
    for code in codes.split(";") if codes else ["0"]:
        if code in ("", "0", "39"):
            css = ""
        elif code in ("30", "31", "32", "33", "34", "35", "36", "37"):
            css = f"a{code}"
        elif code in ("90", "91", "92", "93", "94", "95", "96", "97"):
            css = f"a3{code[1]}"
    return css
