"""The worker of gunicorn that serves the pages: one process, some threads.

A thread that has answered waits a moment for the connection's next request. gunicorn's own gives it
back to the main thread at once, which costs two changes of thread a request: a sixth of the CPU of
a short answer. Scripts and pages ask several times in a row.

No client holds a thread by silence: not before it asks, nor amid its request or its answer.
"""

from __future__ import annotations

import logging
import select
import socket
import struct
from typing import Any

from gunicorn.workers.gthread import _DEFER, ThreadWorker

MOMENT_MS = 5


class LingeringWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """Threads that stay with a connection while nobody else waits for one."""

    PATIENCE_S = 20  # for the rest of a request, and for a client to take its answer

    def init_process(self) -> None:
        """Serve until told to end."""
        self.log.error_log.addFilter(self._tell_briefly)
        super().init_process()

    def _tell_briefly(self, record: logging.LogRecord) -> bool:
        """A client that was cut off is one line: the fault that gunicorn sees is our own limit."""
        if record.exc_info and isinstance(record.exc_info[1], BlockingIOError):
            record.msg, record.args = "cut off a client silent for %d s", (self.PATIENCE_S,)
            record.levelno, record.levelname = logging.WARNING, "WARNING"
            record.exc_info = record.exc_text = None
        return True

    def handle(self, conn: Any) -> Any:
        """Answer requests of ``conn`` until it pauses; whether it is kept."""
        if not conn.initialized:
            # Browsers open connections ahead of need: six of them would hold every thread.
            conn.data_ready = conn.data_ready or _asks(conn)
            if not conn.data_ready:
                return _DEFER
            patience = struct.pack("ll", self.PATIENCE_S, 0)
            conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, patience)
            conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, patience)
        kept = super().handle(conn)
        while kept is True and self.alive and self.tpool._work_queue.empty() and _asks(conn):
            kept = super().handle(conn)
        return kept


def _asks(conn: Any) -> bool:
    """Whether something of a request is there within a moment."""
    pause = select.poll()
    pause.register(conn.sock, select.POLLIN)
    return bool(pause.poll(MOMENT_MS))
