"""How a stage tells how far it is, and hears that it shall stop.

A stage writes ``progress.json`` in its folder, atomically and at most a few times a second, and
says the same in one log line; whoever started it (a job, a shell) reads it. SIGTERM and SIGINT
only set a flag: the stage looks at it between whole pieces of work and raises StopRequested, so
that what lies on disk can always be resumed.
"""

from __future__ import annotations

import logging
import signal
import time
from pathlib import Path
from types import FrameType
from typing import Protocol

from trainer.canonical import utc_now
from trainer.errors import StopRequested
from trainer.files import write_json

MIN_INTERVAL_S = 0.3
LOG = logging.getLogger(__name__)


class Tally(Protocol):
    """What a piece of work tells how far it is."""

    def update(self, done: int, message: str = "") -> None:
        """Note that ``done`` pieces are finished; raise StopRequested if asked to stop."""


class Progress:
    """Counts one stage's work. ``unit`` is what ``done`` and ``total`` count, e.g. ``step``."""

    def __init__(self, path: Path | None, *, unit: str, total: int, done: int = 0) -> None:
        self.path = path
        self.unit = unit
        self.total = total
        self.done = done
        self.started = time.monotonic()
        self.done_at_start = done
        self.message = ""
        self._written = 0.0
        self._write()

    def update(self, done: int, message: str = "") -> None:
        """Note that ``done`` of ``total`` pieces are finished; raise StopRequested if asked to."""
        self.done = done
        self.message = message
        now = time.monotonic()
        if now - self._written >= MIN_INTERVAL_S or done >= self.total:
            self._write()
            LOG.info("%s", self.line())
        check_stop()

    def line(self) -> str:
        """How far it is, for people: count, time left, and what was last done."""
        eta = self.eta_seconds()
        left = "" if eta is None or self.done >= self.total else f", {_span(eta)} left"
        said = f"; {self.message}" if self.message else ""
        return f"{self.unit} {self.done} of {self.total}{left}{said}"

    def share(self) -> Tally:
        """A tally for the next of several runs of the stage: it counts on from here."""
        return _Share(self)

    def finish(self) -> None:
        """Note that nothing is left to do, however much was foreseen."""
        self.total = self.done
        self._write()

    def eta_seconds(self) -> float | None:
        """Seconds left at the pace since this process started; None before anything was done."""
        made = self.done - self.done_at_start
        if made <= 0:
            return None
        return (time.monotonic() - self.started) / made * (self.total - self.done)

    def _write(self) -> None:
        self._written = time.monotonic()
        if self.path is None:
            return
        eta = self.eta_seconds()
        write_json(
            self.path,
            {
                "unit": self.unit,
                "done": self.done,
                "total": self.total,
                "eta_seconds": None if eta is None else round(eta, 1),
                "message": self.message,
                "updated_at": utc_now(),
            },
        )


def _span(seconds: float) -> str:
    """``42 s``, ``12 min``, ``2 h 05 min``."""
    minutes = round(seconds / 60)
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


class _Share:
    def __init__(self, whole: Progress) -> None:
        self._whole = whole
        self._before = whole.done

    def update(self, done: int, message: str = "") -> None:
        self._whole.update(self._before + done, message)


_stop = False


def _ask_to_stop(_signal: int, _frame: FrameType | None) -> None:
    global _stop  # noqa: PLW0603 - a signal has no other place to leave its mark
    _stop = True


def listen_for_stop() -> None:
    """Turn SIGTERM and SIGINT into a request that ``check_stop`` answers. Main thread only."""
    signal.signal(signal.SIGTERM, _ask_to_stop)
    signal.signal(signal.SIGINT, _ask_to_stop)


def check_stop() -> None:
    """Raise StopRequested when a stop was asked for."""
    if _stop:
        raise StopRequested("stopped on request; start again to continue")
