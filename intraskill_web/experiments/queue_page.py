"""The queue's rows: hosts with what they hold, and attempts for JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from intraskill_web.core import formats
from intraskill_web.experiments.models import Attempt
from intraskill_web.monitoring.attempts import environment
from jobs.models import Host
from jobs.transitions import WAITING

COMMIT = re.compile(r"\b[0-9a-f]{40}\b")


def _first_digits(commit: re.Match[str]) -> str:
    return commit[0][:12]


@dataclass(frozen=True, slots=True)
class HostLine:
    """A machine: what it has, who holds its GPUs, what waits for it."""

    host: Host
    holder: Attempt | None
    running: list[Attempt]
    waiting: list[Attempt]

    @property
    def gpus(self) -> list[str]:
        """One line a GPU: its name and its memory, used of all."""
        return [
            f"{gpu.get('index', '')} {gpu.get('name', '')} "
            f"{formats.size(gpu.get('used_bytes'))} / {formats.size(gpu.get('memory_bytes'))}"
            for gpu in self.host.gpus
        ]

    @property
    def versions(self) -> list[tuple[str, str, str]]:
        """Name, version as shown and in full: a commit is known by its first digits."""
        found = [(name, str(version)) for name, version in self.host.versions.items() if version]
        return [(name, COMMIT.sub(_first_digits, full), full) for name, full in found]

    def data(self) -> dict[str, Any]:
        """For JSON."""
        host = self.host
        return {
            "name": host.name,
            "up": host.is_up,
            "seen_at": host.seen_at,
            "gpus": host.gpus,
            "cpus": host.cpus,
            "memory_bytes": host.memory_bytes,
            "free_disk_bytes": host.free_disk_bytes,
            "versions": host.versions,
            "workers": len(host.workers),
            "held_by": self.holder.pk if self.holder else None,
            "held_since": host.leased_at if self.holder else None,
            "running": [attempt.pk for attempt in self.running],
            "waiting": [attempt.pk for attempt in self.waiting],
        }


def host_lines(hosts: Sequence[Host], active: Sequence[Attempt]) -> list[HostLine]:
    """Hosts that are up first; attempts that wait for any host belong to none."""
    by_id = {attempt.pk: attempt for attempt in active}

    def here(host: Host, *, waiting: bool) -> list[Attempt]:
        return [
            attempt
            for attempt in active
            if (attempt.state in WAITING) == waiting
            and (attempt.host or attempt.stage.round.experiment.host) == host.name
        ]

    lines = [
        HostLine(
            host,
            by_id.get(host.lease_id) if host.lease_id else None,
            here(host, waiting=False),
            here(host, waiting=True),
        )
        for host in hosts
    ]
    return sorted(lines, key=lambda line: (not line.host.is_up, line.host.name))


def attempt_data(attempt: Attempt) -> dict[str, Any]:
    """An attempt for JSON."""
    stage = attempt.stage
    return {
        "id": attempt.pk,
        "experiment": stage.round.experiment.name,
        "round": stage.round.number,
        "stage": stage.kind,
        "attempt": attempt.number,
        "state": attempt.state,
        "owner": owner.get_username() if (owner := stage.round.experiment.owner) else None,
        "changes": attempt.changes,
        "skip_reason": attempt.skip_reason,
        "done": stage.done,
        "total": stage.total,
        "unit": stage.unit,
        "eta_seconds": stage.eta_seconds,
        "host": attempt.host,
        "worker": attempt.worker,
        "pid": attempt.pid,
        "created_at": attempt.created_at,
        "started_at": attempt.started_at,
        "ended_at": attempt.ended_at,
        "heartbeat_at": attempt.heartbeat_at,
        "exit_code": attempt.exit_code,
        "signal": attempt.signal,
        "error": attempt.error,
        "peak_memory_bytes": attempt.peak_memory_bytes,
        "environment": environment.masked(attempt.environment),
    }
