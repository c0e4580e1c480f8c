"""How many episodes a rollout worker plays at once, and how blocking calls are waited for.

A slot is held from before the reset until the environment is closed, also when the episode fails or
is cancelled, and released before a group waits for anything; so a retry can take one even when the
limit is 1. Specification: training.md §4.4.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")


class EpisodeAdmission:
    """One semaphore per event loop, made anew when the loop or the limit changes."""

    def __init__(self) -> None:
        self._gates: weakref.WeakKeyDictionary[
            asyncio.AbstractEventLoop, tuple[int, asyncio.Semaphore]
        ] = weakref.WeakKeyDictionary()

    @asynccontextmanager
    async def slot(self, limit: int) -> AsyncIterator[float]:
        """Hold one of ``limit`` slots; yields the seconds waited for it."""
        gate = self._gate(limit)
        asked = time.monotonic()
        async with gate:
            yield time.monotonic() - asked

    def _gate(self, limit: int) -> asyncio.Semaphore:
        if type(limit) is not int or limit < 1:
            raise ValueError(f"episode concurrency must be a positive integer, not {limit!r}")
        loop = asyncio.get_running_loop()
        known = self._gates.get(loop)
        if known is None or known[0] != limit:
            known = self._gates[loop] = (limit, asyncio.Semaphore(limit))
        return known[1]


class BlockingCalls:
    """Runs blocking calls in a pool with one thread per admitted episode.

    The loop's own pool is small and shared: calls that wait for a free slot of the service could
    fill it, and then the call that frees a slot would never run.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._size = 0

    async def run(self, call: Callable[[], T], *, threads: int) -> T:
        """The call's result. It is waited for to its end even when the caller is cancelled."""
        if self._pool is None or self._size < threads:
            self._pool = ThreadPoolExecutor(threads, thread_name_prefix="shop")
            self._size = threads
        return await to_the_end(asyncio.get_running_loop().run_in_executor(self._pool, call))

    def close(self) -> None:
        """Let running calls end and take no more."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None


async def to_the_end(work: Awaitable[T]) -> T:
    """Wait for ``work`` whatever happens; a cancellation is raised once it has ended."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise
            cancelled = True
        except BaseException:  # the work's own error is raised by result() below
            break
    if cancelled:
        if not task.cancelled():
            task.exception()  # seen, so that it is not reported as lost
        raise asyncio.CancelledError
    return task.result()
