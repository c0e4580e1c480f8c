"""A real HTTP receiver on loopback for tests: it answers as told and keeps what it got."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Got:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> dict[str, Any]:
        """The body as JSON."""
        return dict(json.loads(self.body))


@dataclass(slots=True)
class Receiver:
    """``answers`` are given in turn, the last for ever: a status, or None to stay silent."""

    answers: list[int | None] = field(default_factory=lambda: [200])
    got: list[Got] = field(default_factory=list)
    silence_s: float = 2.0
    url: str = ""


@contextmanager
def receiver(*answers: int | None) -> Iterator[Receiver]:
    """A receiver that lives while the block runs."""
    state = Receiver(list(answers) or [200])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            place = min(len(state.got), len(state.answers) - 1)
            state.got.append(Got(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            status = state.answers[place]
            if status is None:
                time.sleep(state.silence_s)
                return
            self.send_response(status)
            if status in (301, 302, 307, 308):
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            """Nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
