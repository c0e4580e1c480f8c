"""Why an attempt ended: the code or signal by name, what probably caused it, what to do, and the
last lines before the error.

Guesses are called so. They rest on how the process ended and on a short list of messages that
tell a known cause; whatever else the log says stands below them.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from intraskill_web.core import formats
from intraskill_web.monitoring.attempts.logs import (
    LogLine,
    is_fault,
    read_log,
    tail_start,
)

BEFORE = 12  # lines of context before the error
AFTER = 40  # lines of the error itself
NEARLY_ALL = 0.9  # share of the machine's memory above which its end is no surprise
SHELL_SIGNALS = 128  # exit codes above are 128 + the signal's number

OUT_OF_MEMORY = re.compile(
    r"MemoryError|CUDA out of memory|OutOfMemoryError|std::bad_alloc|Cannot allocate memory"
    r"|oom-kill|Killed process"
)
DISK_FULL = re.compile(r"No space left on device|database or disk is full|Disk quota exceeded")
READ_ONLY = re.compile(r"Read-only file system|attempt to write a readonly database")
LOCKED = re.compile(r"database is locked")
REFUSED = re.compile(r"Connection refused|ConnectionRefusedError|Name or service not known")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines around the last error; ``place`` is the index of its first line, None without one."""

    lines: Sequence[LogLine]
    place: int | None

    @property
    def first(self) -> LogLine | None:
        """The line that the error begins with."""
        return None if self.place is None else self.lines[self.place]


def excerpt(path: Path) -> Excerpt:
    """The last error in the log's last bytes with the lines before it; else the last lines."""
    lines = read_log(path, tail_start(path), over=True).lines
    place = last_fault(lines)
    if place is None:
        return Excerpt(lines[-BEFORE:], None)
    first = max(0, place - BEFORE)
    return Excerpt(lines[first : place + AFTER], place - first)


def last_fault(lines: Sequence[LogLine]) -> int | None:
    """Where the last error begins: a traceback's head belongs to the fault at its foot."""
    place: int | None = None
    inside = False
    for i, line in enumerate(lines):
        if "Traceback (most recent call last)" in line.text:
            place, inside = i, True
        elif line.level == "error" or is_fault(line.text):
            if not inside:
                place = i
            inside = False
    return place


def ended_how(exit_code: int | None, signal_name: str) -> str:
    """``killed by SIGKILL``, ``exit code 2 (bad input)``; empty when nobody saw."""
    name = signal_name or _signal_of(exit_code)
    if name == "unknown":  # the runner's word where the process left no exit behind
        return _("killed, by what nobody saw")
    if name:
        return _("killed by %(s)s") % {"s": name}
    if exit_code is None:
        return ""
    known = {
        1: _("incomplete"), 2: _("bad input"), 70: _("a fault of ours"),
        126: _("not executable"), 127: _("no such command"),
    }  # fmt: skip
    if exit_code in known:
        return _("exit code %(c)s (%(what)s)") % {"c": exit_code, "what": known[exit_code]}
    return _("exit code %(c)s") % {"c": exit_code}


def _signal_of(exit_code: int | None) -> str:
    if exit_code is None or exit_code <= SHELL_SIGNALS:
        return ""
    try:
        return signal.Signals(exit_code - SHELL_SIGNALS).name
    except ValueError:
        return ""


def hints(attempt: Any, lines: Sequence[LogLine]) -> list[str]:
    """What probably caused it, and what to do; empty when nothing points anywhere."""
    text = "\n".join(line.text for line in lines) + "\n" + str(attempt.error)
    killed = "SIGKILL" in (attempt.signal, _signal_of(attempt.exit_code))
    found: list[str] = []
    if OUT_OF_MEMORY.search(text) or (killed and not attempt.stop_reason):
        found.append(_memory(attempt, certain=bool(OUT_OF_MEMORY.search(text))))
    if DISK_FULL.search(text):
        found.append(
            _("The disk was full. Free some space; resuming goes on from what is written.")
        )
    if READ_ONLY.search(text):
        found.append(_("The run folder could not be written. Make it writable, then resume."))
    if LOCKED.search(text):
        found.append(_("The database was locked for too long. Resume; if it happens again, look "
                       "for another program that holds it."))  # fmt: skip
    if REFUSED.search(text):
        found.append(
            _("A server did not answer. Check that it runs and that its address is right.")
        )
    return found


def _memory(attempt: Any, *, certain: bool) -> str:
    parts = [
        _("The process ran out of memory.")
        if certain
        else _(
            "A process that nobody stopped and that dies by SIGKILL was most likely out of memory."
        )
    ]
    peak, total = attempt.peak_memory_bytes, _total(attempt.environment)
    if peak and total:
        words = _("Its peak was %(peak)s of the machine's %(total)s.")
        parts.append(words % {"peak": formats.size(peak), "total": formats.size(total)})
        if not certain and peak < NEARLY_ALL * total:
            parts.append(_("Other processes may have taken the rest."))
    elif peak:
        parts.append(_("Its peak was %(peak)s.") % {"peak": formats.size(peak)})
    parts.append(_("Free memory, or use smaller batches, then resume."))
    return " ".join(parts)


def _total(environment: dict[str, Any]) -> int | None:
    value = environment.get("memory_bytes")
    return value if isinstance(value, int) else None
