"""Words for how a command ended: from its exit, its log and its result."""

from __future__ import annotations

import json
from pathlib import Path

from jobs import process
from jobs.layout import Command

EXIT_INCOMPLETE = 1
EXIT_STOPPED = 143
LOG_TAIL_BYTES = 4096


def reason(command: Command, ended: process.Exit | None, last: str) -> str:
    """Why a command that did not succeed ended, with the last line of its log."""
    if ended is None:
        return f"{command.key}: the process was killed before it could say how it ended"
    if ended.signal or ended.code == EXIT_STOPPED:
        name = ended.signal or "SIGTERM"
        memory = (ended.peak_memory_bytes or 0) / 2**30
        hint = f"; it held {memory:.1f} GiB at most: out of memory?" if name == "SIGKILL" else ""
        return f"{command.key}: ended by {name}{hint}"
    return f"{command.key}: exit code {ended.code}: {last}"


def last_line(log: Path) -> str:
    """The last line of a log that says something, without control characters."""
    try:
        with log.open("rb") as handle:
            handle.seek(max(0, log.stat().st_size - LOG_TAIL_BYTES))
            lines = handle.read().decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return ""
    said = [line for line in lines if line.strip()]
    last = said[-1] if said else ""
    return "".join(char for char in last if char.isprintable())[:500]


def completed(results: Path) -> str:
    """How much of its work a command says it completed; empty where its result says nothing."""
    try:
        counts = json.loads(results.read_text(encoding="utf-8"))["counts"]
        return f"{counts['completed']} of {counts['requested']} episodes were completed"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
