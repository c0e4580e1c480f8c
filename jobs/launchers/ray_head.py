"""A Ray head of our own on this host, started and ended as one process group.

Everything Ray starts for a head stays in the group of ``ray start --block``, so ending the group
ends exactly what was started here, and never another cluster on the host. The group is identified
by pid, group and start token; a launcher that was killed finds its head again.
"""

from __future__ import annotations

import os
import socket
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs import process

READY_TIMEOUT_S = 300.0
#: Ray gives up on its own parts after 30 s, which a busy host does not keep
PATIENCE = {"RAY_DASHBOARD_SUBPROCESS_MODULE_WAIT_READY_TIMEOUT": "240"}
GRACE_S = 10.0


class HeadFailed(RuntimeError):
    """The head could not be started."""


@dataclass(frozen=True, slots=True)
class RayHead:
    """A head that was started here. ``address`` is its job server."""

    address: str
    ref: process.ProcessRef

    def to_json(self) -> dict[str, Any]:
        """What the launcher remembers."""
        ref = self.ref
        return {"address": self.address, "pid": ref.pid, "pgid": ref.pgid, "started": ref.started}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> RayHead:
        """A head from what was remembered."""
        ref = process.ProcessRef(record["pid"], record["pgid"], record["started"])
        return cls(record["address"], ref)

    def alive(self) -> bool:
        """Whether the group still runs."""
        return process.is_alive(self.ref)

    def stop(self) -> None:
        """End the group: ask, wait, then kill what is left. Nothing else is touched."""
        process.end_group(self.ref, GRACE_S)


def local_head(address: str) -> tuple[str, ...]:
    """The command of a head on this host whose job server answers at ``address``.

    All other ports are free ones, so that it can stand beside Redis and beside another head.
    """
    parts = urllib.parse.urlsplit(address)
    if parts.hostname is None or parts.port is None:
        raise HeadFailed(f"{address} names no host and port")
    ports = {name: str(_free_port()) for name in ("--port", "--dashboard-agent-listen-port")}
    return (
        *(ray_program(), "start", "--head", "--block", "--disable-usage-stats"),
        *("--dashboard-host", parts.hostname, "--dashboard-port", str(parts.port)),
        *(text for pair in ports.items() for text in pair),
        *("--ray-client-server-port", str(_free_port())),
    )


def ray_program() -> str:
    """Ray's command beside this interpreter, else the one on the path."""
    beside = Path(sys.executable).with_name("ray")
    return str(beside) if beside.exists() else "ray"


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("", 0))
        return int(listener.getsockname()[1])


def start_head(
    argv: Sequence[str],
    address: str,
    *,
    log: Path,
    environ: Mapping[str, str],
    register: Callable[[RayHead], None],
    should_stop: Callable[[], bool] = lambda: False,
) -> RayHead:
    """Start ``ray start --head --block …`` and wait until its job server answers.

    ``register`` is called before Ray runs and shall remember the head. Raises HeadFailed, after
    ending what was begun, when it exits, does not answer in time, or ``should_stop`` says so.
    """
    exit_file = log.with_suffix(".exit")
    made: list[RayHead] = []

    def remember(ref: process.ProcessRef) -> None:
        made.append(RayHead(address, ref))
        register(made[0])

    process.start(
        argv,
        cwd=Path.cwd(),
        log=log,
        exit_file=exit_file,
        register=remember,
        env={**os.environ, **PATIENCE, **environ},
    )
    head = made[0]
    deadline = time.monotonic() + READY_TIMEOUT_S
    while not answers(address):
        ended = process.exit_of(exit_file)
        if ended is not None or should_stop() or time.monotonic() > deadline:
            head.stop()
            reason = "was stopped" if ended is None else f"ended with {ended.code or ended.signal}"
            raise HeadFailed(f"the Ray head {reason} before it was ready; see {log}")
        time.sleep(0.25)
    return head


def answers(address: str) -> bool:
    """Whether a job server answers at ``address``."""
    try:
        with urllib.request.urlopen(f"{address}/api/version", timeout=2) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False
