"""Why an attempt waits: for a host, for the GPUs that somebody holds, or behind others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from intraskill_web.core import formats
from intraskill_web.experiments.models import Attempt, Stage
from jobs import queue
from jobs.models import Host
from jobs.queue import QueueStatus
from jobs.transitions import ACTIVE, State

QUIET_S = 30  # a heartbeat older than this is worth a word


WAITS = (State.REQUESTED, State.QUEUED)


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
        return (moves, [(host.pk, host.is_up, host.lease_id) for host in self.hosts])

    def of_stage(self, stage: Stage | None) -> str:
        """Why the stage does not work yet; empty when it does, or there is none."""
        if stage is None or stage.state not in WAITS:
            return ""
        attempt = next((a for a in self.active if a.stage_id == stage.pk), None)
        if attempt is None:
            return ""
        if self._status is None:
            self._status = queue.status()
        return waiting_reason(attempt, self._status, self.active, self.hosts)


def line_of(stages: Iterable[Stage | None]) -> Line | None:
    """The line where one of the stages waits in it; else nothing is asked."""
    return Line.now() if any(stage and stage.state in WAITS for stage in stages) else None


def waiting_reason(
    attempt: Attempt, status: QueueStatus, active: Sequence[Attempt], hosts: Sequence[Host]
) -> str:
    """Why an attempt is not finished: what it waits for, or what it does."""
    if attempt.state in WAITS:
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
    return _in_queue(attempt, active, hosts) if attempt.queue else _unplaced(attempt, hosts)


def _place(attempt: Attempt, active: Sequence[Attempt], hosts: Sequence[Host]) -> str:
    """Its place among those that wait for the same; nothing for the only one."""
    mine = _wants(attempt, hosts)
    same = [a for a in active if a.state in WAITS and _wants(a, hosts) == mine]
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


def _turn(attempt: Attempt) -> tuple[bool, bool, datetime, int]:
    """Workers serve what needs a GPU first, and that in the order in which it was handed in."""
    is_cpu = attempt.queue.endswith(":cpu")
    return bool(attempt.queue), is_cpu, attempt.queued_at or attempt.created_at, attempt.pk


def _has_one_worker(host: Host | None) -> bool:
    return host is not None and len(host.workers) == 1


def _unplaced(attempt: Attempt, hosts: Sequence[Host]) -> str:
    """No host has taken it: which may, and who holds them."""
    wanted = attempt.stage.round.experiment.host
    allowed = [h for h in hosts if h.name == wanted] if wanted else [h for h in hosts if h.is_up]
    if not allowed:
        return _host_is_missing(wanted) if wanted else _("No worker is up")
    if not allowed[0].is_up:
        return _host_is_down(allowed[0])
    holders = [(host, host.lease) for host in allowed if host.lease is not None]
    if len(holders) < len(allowed):
        return _("A worker takes it next")
    first, holder = holders[0]
    words = {
        "host": first.name,
        "what": holder.stage.get_kind_display(),
        "experiment": holder.stage.round.experiment.name,
    }
    if len(holders) == 1:
        return _("Waits for the GPUs of %(host)s: %(what)s of %(experiment)s holds them") % words
    return ngettext(
        "Waits for a GPU; the first of %(n)d host is %(host)s, held by %(what)s of %(experiment)s",
        "Waits for a GPU; the first of %(n)d hosts is %(host)s, held by %(what)s of %(experiment)s",
        len(holders),
    ) % {**words, "n": len(holders)}


def _in_queue(attempt: Attempt, active: Sequence[Attempt], hosts: Sequence[Host]) -> str:
    """It has a host and stands in that host's queue."""
    host = next((h for h in hosts if h.name == attempt.host), None)
    if host is not None and not host.is_up:
        return _host_is_down(host)
    one = _has_one_worker(host)
    ahead = [
        a
        for a in active
        if a.pk != attempt.pk
        and (a.queue == attempt.queue or (one and a.host == attempt.host))
        and _is_ahead(a, attempt)
    ]
    ahead.sort(key=lambda a: a.state in WAITS)  # who works first
    if not ahead:
        return _("A worker of %(host)s takes it next") % {"host": attempt.host}
    return _("Waits at %(host)s for %(what)s of %(experiment)s") % {
        "host": attempt.host,
        "what": ahead[0].stage.get_kind_display(),
        "experiment": ahead[0].stage.round.experiment.name,
    }


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
