"""A few threads that make cards while somebody else looks for more cases.

The first exception that ends the analysis is raised where the work is handed over or waited for;
what was in work then still ends, so that no card is half made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from types import TracebackType

from trainer.analyst.triage_queue import Case

Make = Callable[[Case], None]


class Workers:
    """``concurrency`` threads; as a context manager it waits for what is in work."""

    def __init__(self, make: Make, concurrency: int) -> None:
        self._make = make
        self._pool = ThreadPoolExecutor(concurrency, thread_name_prefix="analyst")
        self._running: set[Future[None]] = set()
        self.done = 0

    def submit(self, cases: Iterable[Case]) -> None:
        """Hand cases over."""
        self._running |= {self._pool.submit(self._make, case) for case in cases}

    def poll(self, timeout: float | None = 0) -> int:
        """Wait up to ``timeout`` seconds for some card; the number of those still in work.

        Raises the first exception that a card ended with.
        """
        if self._running:
            finished, self._running = wait(self._running, timeout, return_when=FIRST_COMPLETED)
            for future in finished:
                self.done += 1
                future.result()
        return len(self._running)

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """Cases not begun are dropped; those in work come to their end."""
        self._pool.shutdown(wait=True, cancel_futures=True)
