"""What a worker writes about its machine when it starts, while it lives and when it ends."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connections, transaction
from django.utils import timezone

from jobs import environment, process
from jobs.models import Host

BEAT_S = 10.0
LOOK_AT_GPUS_S = 60.0
SMI = (
    "nvidia-smi",
    "--query-gpu=index,name,memory.total,memory.used",
    "--format=csv,noheader,nounits",
)
SMI_TIMEOUT_S = 10.0
MEBI = 2**20
Gpus = list[dict[str, Any]]

logger = logging.getLogger(__name__)


class Registration:
    """A worker's side of its host's row. A database that does not answer never ends a worker.

    Every call leaves no open connection: the worker forks, and a child must not inherit one.
    """

    def __init__(
        self,
        worker: str,
        queues: list[str],
        *,
        host: str = "",
        gpus: Callable[[], Gpus | None] | None = None,
    ) -> None:
        self._worker, self._queues = worker, queues
        self._host = host or settings.INTRASKILL_HOST_NAME
        self._gpus = gpus or seen_gpus
        self._beat_at = self._gpus_at = float("-inf")

    def begin(self) -> None:
        """Put the machine and this worker on record."""
        self._write(_machine() | self._with_gpus(), present=True)

    def beat(self) -> None:
        """Say, at most every ten seconds, that the machine is up."""
        now = time.monotonic()
        if now - self._beat_at < BEAT_S:
            return
        self._beat_at = now
        facts: dict[str, Any] = {"free_disk_bytes": free_disk()}
        if now - self._gpus_at >= LOOK_AT_GPUS_S:
            self._gpus_at = now
            self._write(facts | self._with_gpus(), present=True)
        else:
            self._touch(facts)

    def end(self) -> None:
        """Take this worker off the record."""
        self._write({}, present=False)

    def _with_gpus(self) -> dict[str, Any]:
        """Nothing when the driver does not answer: what was seen before stays on record."""
        seen = self._gpus()
        return {} if seen is None else {"gpus": seen}

    def _write(self, facts: dict[str, Any], *, present: bool) -> None:
        with _database():
            write(self._host, self._worker, self._queues, facts, present=present)

    def _touch(self, facts: dict[str, Any]) -> None:
        """Between two looks at the machine one statement says that it is up."""
        with _database():
            Host.objects.filter(name=self._host).update(seen_at=timezone.now(), **facts)


@contextmanager
def _database() -> Iterator[None]:
    try:
        yield
    except DatabaseError as error:
        logger.warning("the host's row was not written: %s", error)
    finally:
        connections.close_all()


def write(
    name: str, worker: str, queues: list[str], facts: dict[str, Any], *, present: bool
) -> Host:
    """Bring the row of this host up to date; workers that died without a word are dropped."""
    with transaction.atomic():
        host, _made = Host.objects.select_for_update().get_or_create(name=name)
        others = [
            row
            for row in host.workers
            if row["name"] != worker and process.is_same(row["pid"], row["started"])
        ]
        pid = os.getpid()
        mine = {
            "name": worker,
            "pid": pid,
            "started": process.start_token(pid),
            "queues": queues,
        }
        host.workers = [*others, *([mine] if present else [])]
        host.queues = sorted({name for row in host.workers for name in row["queues"]})
        for key, value in facts.items():
            setattr(host, key, value)
        host.seen_at = timezone.now()
        host.save(update_fields=["workers", "queues", "seen_at", *facts])
    return host


def _machine() -> dict[str, Any]:
    seen = environment.snapshot()
    packages = {name: version for name, version in seen["packages"].items() if version}
    return {
        "versions": {"python": seen["python"], **packages, "commit": seen["commit"] or ""},
        "cpus": seen["cpus"],
        "memory_bytes": seen["memory_bytes"],
        "free_disk_bytes": free_disk(),
    }


def free_disk() -> int:
    """Bytes free where runs are written."""
    return shutil.disk_usage(Path(settings.INTRASKILL_HOME) / "runs").free


def seen_gpus() -> Gpus | None:
    """The GPUs that the driver names; none where there is no driver, None if it fails."""
    try:
        answer = subprocess.run(
            SMI, capture_output=True, text=True, timeout=SMI_TIMEOUT_S, check=True
        )
    except FileNotFoundError:
        return []
    except (OSError, subprocess.SubprocessError) as error:
        logger.warning("nvidia-smi failed: %s", error)
        return None
    return [_gpu(line) for line in answer.stdout.splitlines() if line.count(",") == 3]


def _gpu(line: str) -> dict[str, Any]:
    index, name, total, used = (part.strip() for part in line.split(","))
    return {
        "index": int(index),
        "name": name,
        "memory_bytes": _mebibytes(total),
        "used_bytes": _mebibytes(used),
    }


def _mebibytes(text: str) -> int | None:
    """A driver may answer ``[N/A]``."""
    return int(text) * MEBI if text.isdigit() else None
