"""What waits in the queue, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from intraskill_web.core import formats
from intraskill_web.experiments.models import Attempt
from intraskill_web.monitoring.attempts import environment
from jobs.queue import QueueStatus
from jobs.transitions import State

QUIET_S = 30  # a heartbeat older than this is worth a word


def waiting_reason(attempt: Attempt, status: QueueStatus, active: Sequence[Attempt]) -> str:
    """Why an attempt is not finished: what it waits for, or what it does."""
    if attempt.state in (State.REQUESTED, State.QUEUED):
        return _before_start(status, active)
    if attempt.state == State.STOPPING:
        return _("Stopping; waits for the process to end")
    beat = attempt.heartbeat_at
    age = (timezone.now() - beat).total_seconds() if beat else 0.0
    if age > QUIET_S:
        return _("No sign of life for %(age)s") % {"age": formats.duration(age)}
    return attempt.stage.message


def _before_start(status: QueueStatus, active: Sequence[Attempt]) -> str:
    if not status.up:
        return _("The queue is down; it is handed in when the queue is back")
    if not status.workers:
        return _("No worker is up")
    working = (State.RUNNING, State.STARTING, State.STOPPING)
    holder = next((a for a in active if a.state in working), None)
    if holder is None:
        return _("A worker takes it next")
    return _("Waits for %(what)s of %(experiment)s") % {
        "what": holder.stage.get_kind_display(),
        "experiment": holder.stage.round.experiment.name,
    }


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
