"""Watching one command of an attempt: progress to rows, signs of life, stopping, how it ended.

A watcher may be killed and replaced at any moment; the process goes on. Rows are written only while
the attempt still names this watcher's job.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import OperationalError
from django.utils import timezone

from intraskill_web.core.text import storable
from intraskill_web.experiments.models import Attempt, Stage
from jobs import process
from jobs.layout import Command
from jobs.models import Host
from jobs.transitions import ACTIVE, State
from trainer.errors import InputError

POLL_S = 0.2
HEARTBEAT_S = 1.0
# A watcher that could not write for so long, while other hosts may take its work for lost, ends it
# before they do (silence.SILENT_S). Where nobody else works, the work outlives any outage.
FENCE_S = 60.0
OTHERS_S = 30.0  # how often it looks whether there are any
OTHERS_WITHIN = timedelta(days=1)


class Superseded(Exception):
    """Another job watches this attempt now, or it is over."""


@dataclass(slots=True)
class Watch:
    """One watcher: the attempt, its job, what to mirror, and the commands whose progress counts."""

    attempt: Attempt
    job_id: str
    commands: Sequence[Command]
    mirror: Callable[[], None]
    _beat_at: float = field(default=0.0, init=False)
    _written_at: float = field(default_factory=time.monotonic, init=False)
    _others_at: float = field(default=float("-inf"), init=False)
    _is_alone: bool = field(default=True, init=False)
    _term_sent_at: float | None = field(default=None, init=False)

    def follow(self, ref: process.ProcessRef, exit_file: Path) -> process.Exit | None:
        """Wait for the group to end, at most a moment beyond it. None: nobody wrote how it ended.

        Raises Superseded when this watcher lost its claim; a group whose attempt is over has been
        ended then.
        """
        while True:
            alive = process.is_alive(ref)
            try:
                self.beat(force=not alive)
            except Superseded:
                if not Attempt.objects.filter(pk=self.attempt.pk, state__in=ACTIVE).exists():
                    process.end_group(ref)
                raise
            if not alive:
                process.reap(ref)
                return process.exit_of(exit_file)
            if self._is_to_end(exit_file):
                self._end(ref)
            time.sleep(POLL_S)

    def beat(self, *, force: bool = False) -> None:
        """Every few seconds: mirror files, show progress, give a sign of life, look for a stop."""
        now = time.monotonic()
        if not force and now - self._beat_at < HEARTBEAT_S and self.attempt.state != State.STOPPING:
            return
        self._beat_at = now
        try:
            self._write_signs()
            self.mirror()
        except (OperationalError, OSError, InputError):
            return  # a busy database, or a file that is being cut back: the next beat comes soon

    def _is_to_end(self, exit_file: Path) -> bool:
        """Whether the group shall end: on request, out of reach, or because its command is over
        badly and what that had started works on for nobody.
        """
        if self.attempt.state == State.STOPPING or self._is_cut_off():
            return True
        ended = process.exit_of(exit_file)
        return ended is not None and ended.code != 0

    def _is_cut_off(self) -> bool:
        """Whether other hosts may soon take this work for lost, because nothing can be written."""
        return not self._is_alone and time.monotonic() - self._written_at > FENCE_S

    def _write_signs(self) -> None:
        now = timezone.now()
        rows = Attempt.objects.filter(pk=self.attempt.pk, job_id=self.job_id, state__in=ACTIVE)
        if not rows.update(heartbeat_at=now):
            raise Superseded(self.job_id)
        self._written_at = time.monotonic()
        self.attempt.refresh_from_db(fields=["state", "stop_reason"])
        if self._written_at - self._others_at > OTHERS_S:
            self._others_at, self._is_alone = self._written_at, not _others()
        progress = read_progress(self.commands)
        if progress is not None:
            Stage.objects.filter(pk=self.attempt.stage_id).exclude(
                **{name: getattr(progress, name) for name in ("done", "total", "eta_seconds")}
            ).update(
                done=progress.done,
                total=progress.total,
                unit=progress.unit,
                eta_seconds=progress.eta_seconds,
                message=storable(progress.message)[:500],
                updated_at=now,
            )

    def _end(self, ref: process.ProcessRef) -> None:
        now = time.monotonic()
        if self._term_sent_at is None:
            self._term_sent_at = now
            process.send(ref, signal.SIGTERM)
        elif now - self._term_sent_at > process.STOP_GRACE_S:
            process.send(ref, signal.SIGKILL)


def _others() -> bool:
    """Whether other hosts worked lately, one of which may take over what runs here."""
    others = Host.objects.exclude(name=settings.INTRASKILL_HOST_NAME).exclude(workers=[])
    return others.filter(seen_at__gte=timezone.now() - OTHERS_WITHIN).exists()


@dataclass(frozen=True, slots=True)
class Reading:
    """A stage's progress over all its commands, in units of the one that works."""

    done: int
    total: int
    unit: str
    eta_seconds: float | None
    message: str


def read_progress(commands: Sequence[Command]) -> Reading | None:
    """The sum of what the parts of all commands report; None before the first report."""
    done = total = 0
    current: dict[str, object] | None = None
    for part in (part for command in commands for part in command.parts):
        report = _report(part.folder / "progress.json")
        if report is None:
            total += part.expected
            continue
        current = report
        done += int(str(report["done"]))
        total += max(int(str(report["total"])), part.expected)
    if current is None:
        return None
    eta = current["eta_seconds"]
    finished = current["done"] == current["total"]
    return Reading(
        done=done,
        total=total,
        unit=str(current["unit"]),
        eta_seconds=None if eta is None or finished else float(str(eta)),
        message=str(current["message"]),
    )


def _report(path: Path) -> dict[str, object] | None:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return report if isinstance(report, dict) else None


def adopt(attempt: Attempt, job_id: str, *, worker: str, pid: int, host: str) -> bool:
    """Make this process the watcher of an attempt that may already run; False if not ours."""
    rows = Attempt.objects.filter(pk=attempt.pk, job_id=job_id)
    return bool(
        rows.update(
            worker=worker,
            watcher_pid=pid,
            watcher_started=process.start_token(pid),
            host=host,
            heartbeat_at=timezone.now(),
            updated_at=timezone.now(),
        )
    )
