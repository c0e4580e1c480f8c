"""The worker of gunicorn that serves the pages: one process, some threads.

A thread that has answered waits a moment for the connection's next request. gunicorn's own gives it
back to the main thread at once, which costs two changes of thread a request: a sixth of the CPU of
a short answer. Scripts and pages ask several times in a row.
"""

from __future__ import annotations

import select
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

MOMENT_MS = 5


class LingeringWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """Threads that stay with a connection while nobody else waits for one."""

    def handle(self, conn: Any) -> Any:
        """Answer requests of ``conn`` until it pauses; whether it is kept."""
        kept = super().handle(conn)
        while kept is True and self.alive and self.tpool._work_queue.empty():
            pause = select.poll()
            pause.register(conn.sock, select.POLLIN)
            if not pause.poll(MOMENT_MS):
                break
            kept = super().handle(conn)
        return kept
