"""Servers of ours and of peers: started, waited for, asked in turns over a connection each, ended.

Imports nothing that a peer's Python may lack.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

READY_S = 120.0
Question = Callable[[], object]


class Line:
    """A connection that stays open, as a browser's does."""

    def __init__(self, port: int, headers: Mapping[str, str] | None = None) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        self._headers = dict(headers or {})

    def get(self, path: str) -> bytes:
        """The body of the answer. Raises RuntimeError unless it is a 200."""
        return self._ask("GET", path)

    def post(self, path: str, body: bytes) -> bytes:
        """The body of the answer to JSON. Raises RuntimeError unless it is a 200."""
        return self._ask("POST", path, body, {"Content-Type": "application/json"})

    def _ask(
        self, method: str, path: str, body: bytes | None = None, more: Mapping[str, str] = {}
    ) -> bytes:
        headers = {**self._headers, **more}
        try:
            self._connection.request(method, path, body, headers)
            answer = self._connection.getresponse()
        except http.client.RemoteDisconnected:  # a server ends what was idle while others answered
            self._connection.request(method, path, body, headers)
            answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{method} {path}: {answer.status} {content[:200]!r}")
        return content


@contextmanager
def served(
    command: Callable[[int], Sequence[str]],
    log: Path,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
) -> Iterator[int]:
    """Run the server that ``command`` of a free port says, and all that it starts; its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with log.open("w") as output:
        server = subprocess.Popen(
            command(port), cwd=cwd, env=environment and dict(environment),
            stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    try:
        _await(port, server, log)
        yield port
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


def _await(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + READY_S
    while server.poll() is None and time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.25)
    raise RuntimeError(f"the server did not open port {port}: see {log}")


def in_turns(
    questions: Mapping[str, Question], *, repeats: int, seconds: float
) -> dict[str, list[float]]:
    """Milliseconds of each who is asked, one after the other and again, for ``seconds`` at most.

    Each is asked twice before, so that caches are warm, and at least three times.
    """
    taken: dict[str, list[float]] = {name: [] for name in questions}
    for ask in [*questions.values()] * 2:
        ask()
    end = time.monotonic() + seconds
    for turn in range(repeats):
        if turn >= 3 and time.monotonic() > end:
            break
        for name, ask in questions.items():
            begun = time.perf_counter()
            ask()
            taken[name].append((time.perf_counter() - begun) * 1000)
    return taken
