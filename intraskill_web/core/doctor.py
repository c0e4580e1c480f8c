"""What can be wrong with an instance, each with what was found and what to do."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from intraskill_web.core.labels import takes
from intraskill_web.core.po import is_stale
from jobs import queue
from jobs.placement import KINDS

MIN_FREE_BYTES = 2 * 1024**3
NETWORK = ("nfs", "nfs4", "cifs", "smb", "smbfs", "fuse.sshfs", "ceph", "lustre", "9p")


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: ``detail`` is what was found, ``remedy`` what to do if it is not ok."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


def examine() -> list[Finding]:
    """Carry out every check; none of them changes anything."""
    return [check() for check in CHECKS]


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", sys.version_info >= (3, 11), version, "Use Python 3.11 or newer")


def _home() -> Finding:
    home = Path(settings.INTRASKILL_HOME)
    probe = home / ".doctor"
    try:
        probe.write_text("ok", encoding="ascii")
        probe.unlink()
    except OSError as error:
        return Finding("home", False, str(error), f"Make {home} writable for this user")
    mode = (home / "secrets").stat().st_mode & 0o777
    if mode != 0o700:
        return Finding(
            "home", False, f"secrets/ has mode {mode:o}", f"chmod 700 {home / 'secrets'}"
        )
    return Finding("home", True, f"{home} is writable, its secrets are closed")


def _disk() -> Finding:
    free = shutil.disk_usage(settings.INTRASKILL_HOME).free
    detail = f"{free / 1024**3:.1f} GiB free"
    return Finding("disk", free >= MIN_FREE_BYTES, detail, "Free at least 2 GiB")


def _database() -> Finding:
    try:
        executor = MigrationExecutor(connection)
        waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as error:
        return Finding("database", False, str(error), "Check DATABASE_URL and that it runs")
    if waiting:
        detail = f"{len(waiting)} migrations are not applied"
        return Finding("database", False, detail, "Run `manage.py migrate`")
    return Finding("database", True, f"{connection.vendor}, all migrations applied")


def _database_place() -> Finding:
    name = "database_place"
    if connection.vendor != "sqlite":
        return Finding(name, True, "not a file")
    path = Path(str(connection.settings_dict["NAME"]))
    kind = _filesystem(path)
    if kind in NETWORK:
        return Finding(
            name, False, f"{path} lies on {kind}, where WAL mode can corrupt it",
            "Move INTRASKILL_HOME to a local disk, or use PostgreSQL by DATABASE_URL",
        )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        mode = str(cursor.fetchone()[0])
    return Finding(
        name, mode in ("wal", "memory"), f"journal mode {mode} on {kind}", "Use a local disk"
    )


def _filesystem(path: Path) -> str:
    """The type of the file system that holds ``path``: that of the deepest mount above it."""
    resolved = path.resolve()
    best = ("", "unknown")
    for part in psutil.disk_partitions(all=True):
        above = resolved.is_relative_to(part.mountpoint)
        if above and len(part.mountpoint) > len(best[0]):
            best = (part.mountpoint, part.fstype)
    return best[1]


def _queue() -> Finding:
    status = queue.status()
    if not status.up:
        return Finding("queue", False, status.error, "Run `manage.py up`, or check REDIS_URL")
    return Finding("queue", True, f"answers, {status.waiting} waiting")


def _workers() -> Finding:
    workers = queue.status().workers
    groups = Counter(takes(worker.kinds) for worker in workers)
    found = [f"{n} for {kinds}" for kinds, n in groups.items()]
    absent = takes(set(KINDS).difference(*(worker.kinds for worker in workers)))
    found += [f"none for {absent}"] if absent else []
    remedy = "Run `manage.py up`, or `manage.py worker` on a host that has none"
    return Finding("workers", not absent, " · ".join(found), remedy)


def _start_files() -> Finding:
    folder = Path(settings.BASE_DIR) / "configs" / "mini"
    needed = (folder / "skillbank.json", folder / "checkpoint" / "checkpoint.json")
    absent = [str(path.relative_to(settings.BASE_DIR)) for path in needed if not path.exists()]
    if absent:
        return Finding("demo_files", False, f"missing: {', '.join(absent)}", "Restore them by git")
    return Finding("demo_files", True, "first bank and starting checkpoint are here")


def _translations() -> Finding:
    stale = list(_stale_catalogues())
    if stale:
        detail = f"not compiled: {', '.join(stale)}"
        return Finding("translations", False, detail, "Run `manage.py translations`")
    return Finding("translations", True, "compiled")


def _stale_catalogues() -> Iterator[str]:
    for folder in settings.LOCALE_PATHS:
        for source in Path(folder).glob("*/LC_MESSAGES/*.po"):
            if is_stale(source):
                yield source.parent.parent.name


CHECKS: tuple[Callable[[], Finding], ...] = (
    _python,
    _home,
    _disk,
    _database,
    _database_place,
    _queue,
    _workers,
    _start_files,
    _translations,
)
