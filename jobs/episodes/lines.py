"""Whole lines of a trace file, from where it was read to: growing files, compressed files.

Offsets count bytes of the text, after decompression. A last line without an end waits until it has
one. The last line that was read must still be there, byte by byte; if not, the file was cut back
and has grown anew, and is taken from its start.
"""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import zstandard

from intraskill_web.episodes.models import IngestedFile
from intraskill_web.experiments.models import Experiment

LINES = 512
BYTES = 8 * 2**20
SKIP = 2**20
LINE_FILES = (".jsonl", ".jsonl.gz", ".jsonl.zst")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some lines in a row, the first of them being line ``first``, and the place behind them.

    ``restarted`` says that the file is taken from its start, ``last`` that nothing stands behind
    these lines, so that whatever was made before of lines behind them must go.
    """

    first: int
    lines: tuple[bytes, ...]
    end: int
    tail_start: int
    tail_sha256: str
    restarted: bool
    last: bool


def place_of(experiment: Experiment, path: str) -> IngestedFile:
    """How far ``path`` was read; a row that is not saved yet when it never was."""
    found = IngestedFile.objects.filter(experiment=experiment, path=path).first()
    return found or IngestedFile(experiment=experiment, path=path)


def chunks(
    file: Path,
    place: IngestedFile,
    *,
    limit: int = LINES,
    most: int = BYTES,
    anew: bool = False,
) -> Iterator[Chunk]:
    """What stands in ``file`` after ``place``, with ``anew`` in all of it.

    ``place`` is left alone. A chunk without lines says only that the file began anew or ends here.
    Raises OSError and EOFError.
    """
    if not file.name.endswith(LINE_FILES):
        yield from _document(file, place, anew=anew)
        return
    restarted = anew or not _still_there(file, place)
    at, number = (0, 0) if restarted else (place.size, place.lines)
    tail_start, tail = (0, "") if restarted else (place.tail_start, place.tail_sha256)
    if not file.exists():
        if restarted:
            yield Chunk(0, (), 0, 0, "", restarted=True, last=True)
        return
    with open_text(file, at) as handle:
        told = not restarted
        while True:
            lines, end, start = _some(handle, at, limit, most)
            last = len(lines) < limit and end - at < most
            if lines:
                tail_start, tail = start, _hash(lines[-1])
            if lines or not told:
                yield Chunk(number, tuple(lines), end, tail_start, tail, restarted, last)
            if last:
                return
            at, number, restarted, told = end, number + len(lines), False, False


def advance(place: IngestedFile, chunk: Chunk) -> None:
    """Move ``place`` behind ``chunk`` without saving it."""
    if chunk.restarted:
        place.bad_lines, place.file_sha256 = 0, ""
    place.size, place.lines = chunk.end, chunk.first + len(chunk.lines)
    place.tail_start, place.tail_sha256 = chunk.tail_start, chunk.tail_sha256


def open_text(file: Path, at: int = 0) -> IO[Any]:
    """The file from byte ``at`` of its text, decompressed by its name."""
    if file.suffix == ".zst":
        stream = io.BufferedReader(zstandard.open(file, "rb"), SKIP)
        left = at
        while left > 0 and (skipped := len(stream.read(min(left, SKIP)))):
            left -= skipped
        return stream
    opener: Any = gzip.open if file.suffix == ".gz" else Path.open
    handle: IO[Any] = opener(file, "rb")
    handle.seek(at)
    return handle


def _some(handle: IO[Any], at: int, limit: int, most: int) -> tuple[list[bytes], int, int]:
    lines: list[bytes] = []
    begin, tail_start = at, at
    while len(lines) < limit and at - begin < most:
        line = handle.readline()
        if not line.endswith(b"\n"):
            break
        lines.append(line)
        tail_start, at = at, at + len(line)
    return lines, at, tail_start


def _document(file: Path, place: IngestedFile, *, anew: bool) -> Iterator[Chunk]:
    """A file that is one trace: read whole when it is new or another than before."""
    text = file.read_bytes()
    digest = _hash(text)
    if anew or place.tail_sha256 != digest:
        yield Chunk(0, (text,), len(text), 0, digest, restarted=anew or bool(place.size), last=True)


def _still_there(file: Path, place: IngestedFile) -> bool:
    if not place.size:
        return True
    try:
        with open_text(file, place.tail_start) as handle:
            return _hash(handle.read(place.size - place.tail_start)) == place.tail_sha256
    except (FileNotFoundError, EOFError):
        return False


def _hash(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()
