"""New whole lines of a growing JSON lines file, with the place to remember."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intraskill_web.episodes.models import IngestedFile
from intraskill_web.experiments.models import Experiment


@dataclass(frozen=True, slots=True)
class NewLines:
    """What was appended since the last reading.

    ``rows`` are ``(line number, end offset, value)``. ``restarted`` says that the file is no longer
    the one that was read before, so that everything made of it must go first.
    """

    rows: tuple[tuple[int, int, Any], ...]
    bad: int
    restarted: bool


def place_of(experiment: Experiment, path: str) -> IngestedFile:
    """How far ``path`` was read; a row that is not saved yet when it never was."""
    found = IngestedFile.objects.filter(experiment=experiment, path=path).first()
    return found or IngestedFile(experiment=experiment, path=path)


def new_lines(file: Path, place: IngestedFile, *, limit: int) -> NewLines:
    """At most ``limit`` whole lines after ``place``; a line that is not JSON is counted as bad.

    Moves ``place`` behind them without saving it. The last line that was read must still be there,
    word by word; if not, the file was cut back and has grown anew, and is taken from its start.
    """
    restarted = not _still_there(file, place)
    if restarted:
        place.size = place.lines = place.bad_lines = place.tail_start = 0
        place.tail_sha256 = ""
    rows: list[tuple[int, int, Any]] = []
    bad = 0
    if file.exists():
        with file.open("rb") as handle:
            handle.seek(place.size)
            for line in handle:
                if not line.endswith(b"\n") or len(rows) >= limit:
                    break
                place.tail_start, place.tail_sha256 = place.size, _hash(line)
                place.size += len(line)
                try:
                    rows.append((place.lines, place.size, json.loads(line)))
                except (UnicodeDecodeError, json.JSONDecodeError):
                    bad += 1
                place.lines += 1
    place.bad_lines += bad
    return NewLines(tuple(rows), bad, restarted)


def _still_there(file: Path, place: IngestedFile) -> bool:
    if not place.size:
        return True
    try:
        with file.open("rb") as handle:
            handle.seek(place.tail_start)
            return _hash(handle.read(place.size - place.tail_start)) == place.tail_sha256
    except FileNotFoundError:
        return False


def _hash(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()
