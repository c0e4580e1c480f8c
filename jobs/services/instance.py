"""Who runs a home folder: a lock that dies with its holder, and the record of what it started.

The lock is the kernel's, so a killed supervisor leaves none behind. The record names every process
the supervisor started, with its start token; the next supervisor ends what a killed one left, and
never anything else.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jobs import process
from trainer.canonical import utc_now
from trainer.errors import InputError
from trainer.files import write_json

LOCK = "instance.lock"
RECORD = "instance.json"
LEFTOVER_GRACE_S = 5.0


def record_of(home: Path) -> dict[str, Any] | None:
    """What the running (or last) supervisor of ``home`` wrote; None if there never was one."""
    try:
        record = json.loads((home / RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return record if isinstance(record, dict) else None


def running(home: Path) -> dict[str, Any] | None:
    """The record of the supervisor that runs ``home`` now, or None."""
    record = record_of(home)
    if record is None or not process.is_same(record["pid"], record["started"]):
        return None
    return record


@contextmanager
def hold(home: Path) -> Iterator[None]:
    """Run ``home``. Raises InputError, naming the holder, when somebody already does."""
    with (home / LOCK).open("a+") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            handle.seek(0)
            raise InputError(
                f"this home is already run by process {_holder(home, handle.read().strip())}",
                file=home,
                remedy="Use that one, stop it with Ctrl-C, or set another INTRASKILL_HOME",
            ) from error
        handle.truncate(0)  # the record comes only with the first service
        handle.write(str(os.getpid()))
        handle.flush()
        end_leftovers(home)
        try:
            yield
        finally:
            (home / RECORD).unlink(missing_ok=True)


def _holder(home: Path, pid: str) -> str:
    """The process of the lock, with what its record tells of it once it is written."""
    record = record_of(home) or {}
    if str(record.get("pid")) != pid:
        return f"{pid}, which is just starting"
    address = record.get("address")
    return f"{pid} since {record['since']}" + (f", at {address}" if address else "")


def write_record(home: Path, children: Mapping[str, process.ProcessRef], **facts: Any) -> None:
    """Put this process and what it started on record."""
    write_json(
        home / RECORD,
        {
            "pid": os.getpid(),
            "started": process.start_token(os.getpid()),
            "since": utc_now(),
            "children": {
                name: {"pid": ref.pid, "pgid": ref.pgid, "started": ref.started}
                for name, ref in children.items()
            },
            **facts,
        },
    )


def end_leftovers(home: Path) -> list[str]:
    """End the services that a killed supervisor of this home left running; returns their names.

    Stages are not services: they are adopted, not ended.
    """
    record = record_of(home) or {}
    refs = {
        name: process.ProcessRef(child["pid"], child["pgid"], child["started"])
        for name, child in (record.get("children") or {}).items()
    }
    left = {name: ref for name, ref in refs.items() if process.is_alive(ref)}
    for ref in left.values():
        process.send(ref, signal.SIGTERM)
    deadline = time.monotonic() + LEFTOVER_GRACE_S
    while any(map(process.is_alive, left.values())) and time.monotonic() < deadline:
        time.sleep(0.1)
    for ref in left.values():
        process.send(ref, signal.SIGKILL)
    return sorted(left)
