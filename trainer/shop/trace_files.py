"""Finished traces of a file, checked as far as a replay relies on them (environment.md §6.3)."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainer.errors import InputError
from trainer.files import parse_json, read_json, read_jsonl
from trainer.reading import Node

_REMEDY = "Name a file of traces: JSON lines (.jsonl, .jsonl.gz) or one JSON document (.json)"


def read_traces(path: Path) -> Iterator[dict[str, Any]]:
    """Traces in file order. Raises InputError naming file, trace and field."""
    if not path.is_file():
        raise InputError("no such file", file=path, remedy=_REMEDY)
    for number, trace in enumerate(_documents(path)):
        _check(Node(trace, path, f"[{number}]"))
        yield trace


def _documents(path: Path) -> Iterator[Any]:
    if path.suffix == ".gz":
        yield from _zipped_lines(path)
    elif path.suffix == ".jsonl":
        yield from read_jsonl(path)
    else:
        document = read_json(path)
        yield from document if isinstance(document, list) else [document]


def _zipped_lines(path: Path) -> Iterator[Any]:
    read = 0
    with gzip.open(path, "rb") as lines:
        while True:
            try:
                line = lines.readline()
                document = parse_json(line) if line else None
            except (OSError, EOFError, zlib.error, ValueError, RecursionError) as error:
                raise InputError(
                    f"damaged trace file: {error}",
                    file=path,
                    field=f"line {read + 1}",
                    remedy=_REMEDY,
                ) from error
            if not line:
                return
            read += 1
            yield document


def _check(trace: Node) -> None:
    """What a replay reads has the right kind; what it compares may be anything."""
    trace["job"]["task_id"].integer(least=0)
    provenance = trace.get("provenance")
    if provenance.value is not None:
        environment, runtime = provenance.get("environment"), provenance.get("runtime")
        if environment.value is not None and "profile" in environment.mapping():
            environment["profile"].string()
        if runtime.value is not None and runtime.get("max_steps").value is not None:
            runtime["max_steps"].integer(least=1)
    for part in ("reset", "final"):
        if trace.get(part).value is not None:
            trace[part].mapping()
    for step in trace["steps"]:
        step["step_index"].integer(least=0)
        if step.get("action").value is not None:
            step["action"].string()
        if step.get("environment").value is not None:
            step["environment"].mapping()
