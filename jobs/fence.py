"""Nothing runs twice: ends what still works on this host for an attempt that is over.

An attempt is called ``lost`` while its host is silent. When the host returns with its process
alive, the process must not go on beside the attempt that took its place.
"""

from __future__ import annotations

import signal
import time

from django.conf import settings
from django.db.models import QuerySet

from intraskill_web.experiments.models import Attempt, Stage
from jobs import process
from jobs.transitions import State

LATEST = 200  # attempts that were lost longer ago are of former boots


def end_former(stage: Stage) -> None:
    """Before the stage begins again here: end what its lost attempts left."""
    for attempt in _lost().filter(stage=stage):
        if (ref := _group(attempt)) is not None:
            process.end_group(ref)


def end_lost(asked: dict[int, float | None], grace_s: float = process.STOP_GRACE_S) -> None:
    """End what any lost attempt left on this host, politely first, and wait for nothing.

    ``asked`` remembers between calls when each was asked to end; None: nothing of it lives.
    """
    now = time.monotonic()
    for attempt in _lost()[:LATEST]:
        since = asked.get(attempt.pk, now)
        if since is None:
            continue
        ref = _group(attempt)
        if ref is not None:
            process.reap(ref)
        if ref is None or not process.is_alive(ref):
            asked[attempt.pk] = None
        elif attempt.pk not in asked:
            asked[attempt.pk] = now
            process.send(ref, signal.SIGTERM)
        elif now - since > grace_s:
            process.send(ref, signal.SIGKILL)


def _group(attempt: Attempt) -> process.ProcessRef | None:
    if not attempt.pid or not attempt.pgid:
        return None
    return process.ProcessRef(attempt.pid, attempt.pgid, attempt.process_started)


def _lost() -> QuerySet[Attempt]:
    mine = Attempt.objects.filter(state=State.LOST, host=settings.INTRASKILL_HOST_NAME)
    return mine.exclude(pid=None).order_by("-ended_at")
