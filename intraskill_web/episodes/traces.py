"""Reading one trace: from the pack, else from its file (line ``n`` of JSON lines, or a whole file).

The file is the evidence and the pack its copy, so a trace can be read as long as either is there.
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import zstandard

from intraskill_web.episodes import bodies
from intraskill_web.episodes.listed import Listed
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.prepare import parse
from intraskill_web.experiments.models import Experiment
from trainer.errors import InputError
from trainer.rollout.private import public

SURROGATE = re.compile("[\ud800-\udfff]")
DEEPEST = 254  # levels


def read_trace(episode: Episode | Listed) -> dict[str, Any]:
    """The trace behind a row. Raises InputError when it is gone or damaged."""
    try:
        body = read_body(episode)
    except InputError as error:
        raise InputError(f"the trace {error.reason}", file=episode.path) from error
    return trace_of(episode, body)


def shown_trace(episode: Episode | Listed, *, goal: bool) -> tuple[dict[str, Any], str]:
    """The trace for a reader, or why there is none; without what is private unless ``goal``."""
    try:
        trace = read_trace(episode)
    except InputError as error:
        return {}, str(error)
    return (trace if goal else public(trace)), ""


def ready_trace(episode: Listed) -> orjson.Fragment | None:
    """The trace as bytes for an answer; None where it has to be read first, or is gone."""
    if episode.pack is None:
        return None
    try:
        with bodies.Packs() as packs:
            line = packs.ready(bodies.Place(episode.pack, episode.body_at, episode.body_size))
    except OSError:
        return None
    return None if line is None else orjson.Fragment(line)


def trace_of(episode: Episode | Listed, body: bytes) -> dict[str, Any]:
    """The trace that ``body`` is. Raises InputError."""
    halves = False
    try:
        trace = orjson.loads(body)
    except orjson.JSONDecodeError:
        halves = b"\\ud" in body or b"\\uD" in body
        try:
            trace = parse(body)
        except InputError as error:
            raise InputError(f"the trace {error.reason}", file=episode.path) from error
    if not isinstance(trace, dict):
        raise InputError("the trace is not an object", file=episode.path, value=episode.line)
    if halves or body.count(b"{") + body.count(b"[") > DEEPEST:
        try:
            return answerable(trace, halves=halves)
        except InputError as error:
            raise InputError(f"the trace {error.reason}", file=episode.path) from error
    return trace


def answerable(trace: dict[str, Any], *, halves: bool = True) -> dict[str, Any]:
    """``trace`` as an answer can carry it; ``halves``: it may hold lone surrogates.

    Raises InputError for one that is nested too deeply.
    """
    try:
        shown: dict[str, Any] = printable(trace) if halves else trace
        if not too_deep(shown):
            return shown
    except RecursionError:
        pass
    raise InputError("is nested too deeply to be shown")


def too_deep(trace: object) -> bool:
    """Whether ``trace`` is nested deeper than 254 levels, which no answer can carry."""
    try:
        orjson.dumps(trace)
    except orjson.JSONEncodeError as error:
        return "ecursion" in str(error)
    return False


def read_body(
    episode: Episode | Listed, read: Callable[[bodies.Place], bytes] = bodies.read
) -> bytes:
    """The bytes of the trace, of a pack by ``read``. Raises InputError."""
    if episode.pack is not None:
        try:
            return read(bodies.Place(episode.pack, episode.body_at, episode.body_size))
        except OSError:
            pass  # the packs are copies; the file still has it
    run = episode.experiment
    folder = Experiment(name=run).folder if isinstance(run, str) else run.folder
    path = folder / episode.path
    if not _inside(path, folder):
        raise InputError("lies outside the experiment's folder", file=episode.path)
    try:
        line = _line(path, episode.line)
    except (OSError, EOFError, gzip.BadGzipFile, zstandard.ZstdError) as error:
        raise InputError(f"file cannot be read: {error}", file=episode.path) from error
    if line is None:
        raise InputError(f"file has no line {episode.line + 1}", file=episode.path)
    return line


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
    if path.suffix == ".json":
        return path.read_bytes()
    if path.suffix == ".zst":
        with io.BufferedReader(zstandard.open(path, "rb")) as stream:
            return next(islice(stream, number, None), None)
    opener = gzip.open if path.suffix == ".gz" else Path.open
    with opener(path, "rb") as handle:
        return next(islice(handle, number, None), None)


def _inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())
