"""Reading and writing the run folder: whole files appear at once or not at all.

Documents are written to a hidden sibling and renamed over the target. Append-only JSON lines are
flushed to disk per call; a torn last line (a crash in the middle of a write) is ignored on
reading and cut away before the next append, so that it can never swallow a good line.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from trainer.errors import InputError


def write_bytes(path: Path, data: bytes) -> None:
    """Publish ``data`` at ``path`` by one atomic rename; parent folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        with partial.open("wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Publish UTF-8 ``text`` atomically."""
    write_bytes(path, text.encode())


def write_json(path: Path, value: object) -> None:
    """Publish ``value`` as JSON indented by two spaces, non-ASCII kept; NaN is refused."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """The parsed file. Raises InputError that names the file when it is missing or not JSON."""
    try:
        return _parse_file(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError("no such file", file=path) from error
    except IsADirectoryError as error:
        raise InputError("is a folder, not a file", file=path) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"not valid JSON: {error}", file=path) from error


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError, also on NaN and infinities, which JSON lacks."""
    return json.loads(text, parse_constant=refuse_constant)


def _parse_file(text: bytes) -> Any:
    """The value of a file or line. Half of a surrogate pair, which no file can hold, is refused."""
    value = parse_json(text)
    if b"\\ud" in text or b"\\uD" in text:  # rare, so that the costly check is too
        json.dumps(value, ensure_ascii=False).encode()
    return value


def refuse_constant(name: str) -> Any:
    """For ``parse_constant``: NaN and infinities are no JSON. Raises ValueError."""
    raise ValueError(f"{name} is no JSON number")


def append_jsonl(path: Path, rows: Iterable[object], *, compact: bool = True) -> None:
    """Append ``rows`` and wait until they are on disk."""
    separators = (",", ":") if compact else None
    text = "".join(
        json.dumps(row, ensure_ascii=False, allow_nan=False, separators=separators) + "\n"
        for row in rows
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    cut_torn_line(path)
    with path.open("ab") as handle:
        handle.write(text.encode())
        handle.flush()
        os.fsync(handle.fileno())


def write_jsonl(path: Path, rows: Iterable[object], *, compact: bool = True) -> None:
    """Publish ``rows`` as a whole JSON lines file by one atomic rename."""
    separators = (",", ":") if compact else None
    write_text(
        path,
        "".join(
            json.dumps(row, ensure_ascii=False, allow_nan=False, separators=separators) + "\n"
            for row in rows
        ),
    )


def read_jsonl(path: Path) -> Iterator[Any]:
    """Each line of ``path``; nothing when the file is absent. A torn last line is skipped.

    Raises InputError when a line before the last is not JSON: that is damage, not a crash.
    """
    if not path.exists():
        return
    with path.open("rb") as handle:
        for number, line in enumerate(handle, 1):
            if not line.endswith(b"\n"):
                return
            try:
                yield _parse_file(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"line {number} is not valid JSON: {error}", file=path) from error


def cut_torn_line(path: Path) -> None:
    """Cut an unfinished last line off ``path``."""
    if not path.exists():
        return
    with path.open("rb+") as handle:
        size = handle.seek(0, os.SEEK_END)
        if size == 0:
            return
        handle.seek(size - 1)
        if handle.read(1) == b"\n":
            return
        handle.seek(0)
        keep = handle.read().rfind(b"\n") + 1
        handle.truncate(keep)
