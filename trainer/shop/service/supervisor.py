"""Keeps the workers of a service alive. They are forked, so they share the memory of the world."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_START_SECONDS = 60.0
#: a worker that ends sooner is not started again at once
_SHORTEST_LIFE = 1.0
_LOG = logging.getLogger(__name__)


class Supervisor:
    """Runs ``work(n)`` in a process for each file of ``ready``, until SIGTERM or Ctrl-C.

    Worker n makes ``ready[n]`` when it can be reached. One that dies is started again.
    """

    def __init__(self, work: Callable[[int], None], ready: Sequence[Path]) -> None:
        self._work = work
        self._ready = ready
        self._workers: dict[int, tuple[int, float]] = {}  # process id → worker, time of its start
        self._stopping = False

    def run(self, announce: Callable[[], None]) -> int:
        """``announce()`` is called once all workers can be reached. 1: they never could."""
        for number in _SIGNALS:
            signal.signal(number, self._stop)
        for worker in range(len(self._ready)):
            self._start(worker)
        failed = False
        if self._can_be_reached():
            announce()
        elif not self._stopping:
            _LOG.error("not all workers could be reached within %.0f s", _START_SECONDS)
            failed = True
            self._stop()
        while self._workers:
            pid, status = os.wait()
            worker, started = self._workers.pop(pid)
            if self._stopping:
                continue
            code = os.waitstatus_to_exitcode(status)
            _LOG.error("worker %d ended with %d; starting it again", worker, code)
            time.sleep(max(0.0, started + _SHORTEST_LIFE - time.monotonic()))
            self._start_again(worker)
        return int(failed)

    def _can_be_reached(self) -> bool:
        """Wait for all workers; False when the time is over or a stop came first."""
        give_up = time.monotonic() + _START_SECONDS
        while not self._stopping and time.monotonic() < give_up:
            if all(path.exists() for path in self._ready):
                return True
            time.sleep(0.02)
        return False

    def _start_again(self, worker: int) -> None:
        """Start a worker as soon as the system has a process for it."""
        while not self._stopping:
            try:
                return self._start(worker)
            except OSError as error:
                _LOG.error("worker %d cannot be started yet: %s", worker, error)
                time.sleep(_SHORTEST_LIFE)

    def _start(self, worker: int) -> None:
        with _signals_held():  # a stop comes before the fork or after it, never between
            if self._stopping:
                return
            pid = os.fork()
            if pid:
                self._workers[pid] = worker, time.monotonic()
                return
            code = 70
            try:
                for number in _SIGNALS:
                    signal.signal(number, signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
                self._work(worker)
                code = 0
            except Exception:
                _LOG.exception("worker %d failed", worker)
            finally:
                os._exit(code)

    def _stop(self, number: int = signal.SIGTERM, frame: object = None) -> None:
        self._stopping = True
        for pid in self._workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
