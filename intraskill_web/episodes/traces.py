"""Reading one trace from its file: line ``n`` of a JSON lines file, gzipped or not."""

from __future__ import annotations

import gzip
import json
import re
from itertools import islice
from pathlib import Path
from typing import Any

from intraskill_web.episodes.models import Episode
from trainer.errors import InputError

SURROGATE = re.compile("[\ud800-\udfff]")


def read_trace(episode: Episode) -> dict[str, Any]:
    """The trace behind a row. Raises InputError when the file or the line is gone or damaged."""
    path = episode.file
    if not _inside(path, episode.experiment.folder):
        raise InputError("the trace lies outside the experiment's folder", file=episode.path)
    try:
        line = _line(path, episode.line)
    except (OSError, EOFError, gzip.BadGzipFile) as error:
        raise InputError(f"the trace file cannot be read: {error}", file=episode.path) from error
    if line is None:
        raise InputError("the trace file has no such line", file=episode.path, value=episode.line)
    try:
        trace = json.loads(line)
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"the trace is not JSON: {error}", file=episode.path) from error
    trace = printable(trace)
    if not isinstance(trace, dict):
        raise InputError("the trace is not an object", file=episode.path, value=episode.line)
    return trace


def printable(value: Any) -> Any:
    """``value`` with every lone surrogate, which no answer can carry, as a question mark."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode() if SURROGATE.search(value) else value
    if isinstance(value, list):
        return [printable(item) for item in value]
    if isinstance(value, dict):
        return {printable(key): printable(item) for key, item in value.items()}
    return value


def _line(path: Path, number: int) -> bytes | None:
    opener = gzip.open if path.suffix == ".gz" else Path.open
    with opener(path, "rb") as handle:
        return next(islice(handle, number, None), None)


def _inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())
