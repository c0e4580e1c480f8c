"""Hosts that fell silent in the middle of a stage: power off, network gone, no reconciler left.

A host that works writes two kinds of beats: its workers', and its watchers' in their attempts.
Whether it still does is judged by *change*, as seen by this process on its own monotonic clock,
never by comparing times that two machines wrote: a clock that is wrong or was set loses nothing.
Only time in which the database answered counts, so an outage for all is nobody's silence.

An attempt of a silent host is ``lost``; its lease ends with it, and it may go on elsewhere. Should
the host live after all, its own watcher has ended the work before (``watch.FENCE_S``), or ends it
as soon as it reads what became of the attempt (``jobs/fence.py``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import F, Max
from django.utils import timezone

from intraskill_web.core import audit
from intraskill_web.experiments.models import Attempt, Stage
from intraskill_web.experiments.moves import move
from jobs import placement, watch
from jobs.models import Host
from jobs.process import STOP_GRACE_S
from jobs.transitions import WAITING, State

SILENT_S = 90.0
LONGEST_STEP_S = 30.0  # what one look adds at most: two passes of the reconciler
VANISHED = "vanished"  # the reason, where nobody had asked for a stop
AT_WORK = (State.STARTING, State.RUNNING, State.STOPPING)
assert watch.FENCE_S + STOP_GRACE_S < SILENT_S, "a host ends its work before it is given up"

Beats = tuple[datetime | None, datetime | None]


@dataclass(slots=True)
class _Heard:
    beats: Beats
    silent_s: float = 0.0


class Silence:
    """What one reconciler heard of the other hosts that work."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._looked_at: float | None = None
        self._heard: dict[str, _Heard] = {}

    def look(self) -> dict[str, Beats]:
        """The hosts with work that were silent for too long, and the last beats of each.

        Raises DatabaseError; the time until the next look then counts as one step at most.
        """
        beats = _beats()
        now = self._clock()
        step = 0.0 if self._looked_at is None else min(now - self._looked_at, LONGEST_STEP_S)
        self._looked_at = now
        heard = {}
        for host, latest in beats.items():
            before = self._heard.get(host)
            same = before is not None and before.beats == latest
            heard[host] = _Heard(latest, before.silent_s + step if before and same else 0.0)
        self._heard = heard
        return {host: h.beats for host, h in heard.items() if h.silent_s >= SILENT_S}


def _beats() -> dict[str, Beats]:
    """Of each other host with work: its workers' latest beat and its watchers'."""
    busy = Attempt.objects.filter(state__in=AT_WORK).exclude(host=settings.INTRASKILL_HOST_NAME)
    watched = dict(busy.order_by().values_list("host").annotate(Max("heartbeat_at")))
    if not watched:
        return {}
    seen = dict(Host.objects.filter(name__in=watched).values_list("name", "seen_at"))
    return {host: (seen.get(host), beat) for host, beat in watched.items()}


def call_lost(silent: Mapping[str, Beats]) -> list[Attempt]:
    """Make ``lost`` what ran on these hosts, unless one of them was heard of this very moment."""
    lost = []
    for host, beats in silent.items():
        with transaction.atomic():
            rows = Attempt.objects.select_for_update(of=("self",)).filter(state__in=AT_WORK)
            busy = list(rows.filter(host=host).select_related("stage__round__experiment"))
            if _beats().get(host) != beats:
                continue  # asked once for all, because each that is lost takes its beat along
            reason = _reason(host, max(filter(None, beats), default=None))
            for attempt in busy:
                fields = {"error": reason, "stop_reason": attempt.stop_reason or VANISHED}
                if not move(attempt, State.LOST, job_id=attempt.job_id, message=reason, **fields):
                    continue
                audit.record(
                    "attempt.lost",
                    experiment=attempt.stage.round.experiment.name,
                    subject=str(attempt),
                    host=host,
                )
                lost.append(attempt)
    return lost


def _reason(host: str, last: datetime | None) -> str:
    heard = f"last heard of {timezone.localtime(last):%Y-%m-%d %H:%M:%S %Z}" if last else "unheard"
    return f"host {host} vanished in the middle of the work, {heard}"


def may_go_on(attempt: Attempt) -> bool:
    """Whether what a lost attempt wrote can be read by who takes it up, because files are shared.

    An experiment that names its host goes on there, whenever that is.
    """
    here = attempt.host in ("", settings.INTRASKILL_HOST_NAME)
    experiment = attempt.stage.round.experiment
    return here or bool(experiment.host) or (experiment.folder / "experiment.json").is_file()


def say_what_waits() -> None:
    """Let a stage that waits for its own host, which is down, say so where people look."""
    waiting = Attempt.objects.filter(state__in=WAITING).exclude(queue="")
    pinned = waiting.exclude(host="").filter(host=F("stage__round__experiment__host"))
    for attempt in pinned.exclude(host__in=placement.hosts_up()):
        message = f"waiting for host {attempt.host}, which is down: start its worker or unpin it"
        Stage.objects.filter(pk=attempt.stage_id).exclude(message=message).update(
            message=message, updated_at=timezone.now()
        )
