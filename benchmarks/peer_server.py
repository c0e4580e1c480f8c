"""What a server of ours and of each peer is asked by: started, waited for, timed, ended. Imports
nothing that a peer's Python may lack.
"""

from __future__ import annotations

import os
import signal
import socket
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

READY_S = 120.0


@contextmanager
def served(command: Callable[[int], Sequence[str]], log: Path, cwd: Path) -> Iterator[int]:
    """Run the server that ``command`` of a free port says, and all that it starts; its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with log.open("w") as output:
        server = subprocess.Popen(
            command(port), cwd=cwd, stdout=output, stderr=output, start_new_session=True
        )
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


def times(work: Callable[[], object], repeats: int) -> list[float]:
    """Milliseconds of each of ``repeats``, after one that warms up."""
    work()
    found = []
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        found.append((time.perf_counter() - begun) * 1000)
    return found


def median(work: Callable[[], object], repeats: int) -> float:
    """The median of ``times``."""
    return statistics.median(times(work, repeats))
