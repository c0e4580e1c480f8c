"""Why an attempt waits: for a host, for the GPUs that somebody holds, or behind others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from intraskill_web.core import formats
from intraskill_web.core.labels import takes
from intraskill_web.experiments.models import Attempt, Stage
from jobs import placement, queue
from jobs.models import Host
from jobs.queue import QueueStatus
from jobs.transitions import ACTIVE, WAITING, State

QUIET_S = 30  # a heartbeat older than this is worth a word


@dataclass(slots=True)
class Line:
    """Everything that waits or works now, and where: what a reason is told from."""

    active: Sequence[Attempt]
    hosts: Sequence[Host]
    _status: QueueStatus | None = None

    @classmethod
    def now(cls) -> Line:
        """As it is (two queries)."""
        rows = Attempt.objects.filter(state__in=ACTIVE).order_by("created_at", "pk")
        hosts = Host.objects.select_related("lease__stage__round__experiment").order_by("name")
        return cls(list(rows.select_related("stage__round__experiment")), list(hosts))

    def token(self) -> tuple[object, ...]:
        """Changes whenever a reason may."""
        moves = [(a.pk, a.state, a.queue) for a in self.active]
        return (moves, [(host.pk, host.is_up, host.lease_id, host.queues) for host in self.hosts])

    def of_stage(self, stage: Stage | None) -> str:
        """Why the stage does not work yet; empty when it does, or there is none."""
        if stage is None or stage.state not in WAITING:
            return ""
        attempt = next((a for a in self.active if a.stage_id == stage.pk), None)
        if attempt is None:
            return ""
        if self._status is None:
            self._status = queue.status()
        return waiting_reason(attempt, self._status, self.active, self.hosts)


def line_of(stages: Iterable[Stage | None]) -> Line | None:
    """The line where one of the stages waits in it; else nothing is asked."""
    return Line.now() if any(stage and stage.state in WAITING for stage in stages) else None


def waiting_reason(
    attempt: Attempt, status: QueueStatus, active: Sequence[Attempt], hosts: Sequence[Host]
) -> str:
    """Why an attempt is not finished: what it waits for, or what it does."""
    if attempt.state in WAITING:
        return _before_start(attempt, status, active, hosts) + _place(attempt, active, hosts)
    if attempt.state == State.STOPPING:
        return _("Stopping; waits for the process to end")
    beat = attempt.heartbeat_at
    age = (timezone.now() - beat).total_seconds() if beat else 0.0
    if age > QUIET_S:
        return _("No sign of life for %(age)s") % {"age": formats.duration(age)}
    return attempt.stage.message


def _before_start(
    attempt: Attempt, status: QueueStatus, active: Sequence[Attempt], hosts: Sequence[Host]
) -> str:
    if not status.up:
        return _("The queue is down; it is handed in when the queue is back")
    by_place = _in_queue if attempt.queue else _unplaced
    return by_place(attempt, active, hosts)


def _place(attempt: Attempt, active: Sequence[Attempt], hosts: Sequence[Host]) -> str:
    """Its place among those that wait for the same; nothing for the only one."""
    mine = _wants(attempt, hosts)
    same = [a for a in active if a.state in WAITING and _wants(a, hosts) == mine]
    if len(same) < 2:
        return ""
    ahead = sum(_turn(a) < _turn(attempt) for a in same)
    return " · " + _("place %(n)d of %(total)d") % {"n": ahead + 1, "total": len(same)}


def _wants(attempt: Attempt, hosts: Sequence[Host]) -> tuple[str, str]:
    """What it stands in line for: a host's only worker, a queue of a host, or else a host."""
    if not attempt.queue:
        return "", attempt.stage.round.experiment.host
    host = next((h for h in hosts if h.name == attempt.host), None)
    return ("worker", attempt.host) if _has_one_worker(host) else ("queue", attempt.queue)


def _turn(attempt: Attempt) -> tuple[Any, ...]:
    """A host takes who is of the oldest round. Workers serve what needs a GPU first, and that in
    the order in which it was handed in. Comparable among those that want the same.
    """
    if not attempt.queue:
        return attempt.stage.round_id, attempt.pk
    is_cpu = attempt.queue.endswith(":cpu")
    return is_cpu, attempt.queued_at or attempt.created_at, attempt.pk


def _has_one_worker(host: Host | None) -> bool:
    return host is not None and len(placement.of_stages(host.name, host.workers)) == 1


def _unplaced(attempt: Attempt, active: Sequence[Attempt], hosts: Sequence[Host]) -> str:
    """No host has taken it: which may, and who holds their GPUs or their workers."""
    wanted = attempt.stage.round.experiment.host
    allowed = [h for h in hosts if h.name == wanted] if wanted else [h for h in hosts if h.is_up]
    if not allowed:
        return _host_is_missing(wanted) if wanted else _("No worker is up")
    if not allowed[0].is_up:
        return _host_is_down(allowed[0])
    kind = placement.kind_of(attempt.stage, skipped=bool(attempt.skip_reason))
    allowed = [h for h in allowed if placement.of_kind(h.name, h.workers, kind)]
    if not allowed:
        return _nobody_takes(kind, wanted)
    leases = [host.lease if kind == "gpu" else None for host in allowed]
    there = [
        lease or _who_fills(host, kind, attempt, active)
        for host, lease in zip(allowed, leases, strict=True)
    ]
    first = there[0]
    if first is None or None in there:
        return _("A worker takes it next")
    words = {**_words(allowed[0].name, first), "n": len(allowed)}
    return _all_leased(words) if leases[0] else _all_full(words)


def _nobody_takes(kind: placement.Kind, host: str) -> str:
    """The hosts are up, with workers for other work only."""
    kinds = {"kinds": takes([kind]), "host": host}
    if host:
        return _("Host %(host)s has no worker for %(kinds)s. Start manage.py worker there") % kinds
    return _("No worker is up for %(kinds)s") % kinds


def _all_leased(words: dict[str, Any]) -> str:
    if words["n"] == 1:
        return _("Waits for the GPUs of %(host)s: %(what)s of %(experiment)s holds them") % words
    return (
        _(
            "Waits for a GPU; the first of %(n)d hosts is %(host)s, held by %(what)s of "
            "%(experiment)s"
        )
        % words
    )


def _all_full(words: dict[str, Any]) -> str:
    if words["n"] == 1:
        return _("Waits at %(host)s for %(what)s of %(experiment)s") % words
    return (
        _(
            "Waits for a worker; the first of %(n)d hosts is %(host)s, busy with %(what)s of "
            "%(experiment)s"
        )
        % words
    )


def _who_fills(
    host: Host, kind: placement.Kind, attempt: Attempt, active: Sequence[Attempt]
) -> Attempt | None:
    """The first of those that leave no worker of the host free for it; None where one is."""
    there = [a for a in active if a.host == host.name and a.pk != attempt.pk]
    room = placement.room_of(host.name, host.workers, [a.queue for a in there])
    there.sort(key=lambda a: a.state in WAITING)  # who works first
    return there[0] if there and room[kind] < 1 else None


def _words(host: str, ahead: Attempt) -> dict[str, str]:
    return {
        "host": host,
        "what": ahead.stage.get_kind_display(),
        "experiment": ahead.stage.round.experiment.name,
    }


def _in_queue(attempt: Attempt, active: Sequence[Attempt], hosts: Sequence[Host]) -> str:
    """It has a host and stands in that host's queue."""
    host = next((h for h in hosts if h.name == attempt.host), None)
    if host is not None and not host.is_up:
        return _host_is_down(host)
    kind = placement.kind_of(attempt.stage, skipped=bool(attempt.skip_reason))
    if host is not None and not placement.of_kind(host.name, host.workers, kind):
        return _nobody_takes(kind, host.name)
    one = _has_one_worker(host)
    ahead = [
        a
        for a in active
        if a.pk != attempt.pk
        and (a.queue == attempt.queue or (one and a.host == attempt.host))
        and _is_ahead(a, attempt)
    ]
    ahead.sort(key=lambda a: a.state in WAITING)  # who works first
    if not ahead:
        return _("A worker of %(host)s takes it next") % {"host": attempt.host}
    words = _words(attempt.host, ahead[0])
    return _("Waits at %(host)s for %(what)s of %(experiment)s") % words


def _is_ahead(other: Attempt, attempt: Attempt) -> bool:
    working = other.state in (State.RUNNING, State.STARTING, State.STOPPING)
    return working or (other.state == State.QUEUED and _turn(other) < _turn(attempt))


def _host_is_missing(name: str) -> str:
    return _("Waits for host %(host)s, which was never seen. Start manage.py worker there") % {
        "host": name
    }


def _host_is_down(host: Host) -> str:
    return _("Host %(host)s is down, last seen %(ago)s. Start manage.py worker there") % {
        "host": host.name,
        "ago": formats.ago(host.seen_at),
    }
