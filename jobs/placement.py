"""Where an attempt runs: its host, its queue there, and the lease on the host's GPUs.

The database decides, in the transaction that hands the attempt in, so that of two that want the
same GPU one waits: an attempt whose host is busy stays ``requested`` and is not in any queue. The
lease ends with the attempt, in the same transaction. rq only carries the job to the host.

A host takes as many attempts as it has workers for. So what waits does so here and not in a queue,
and goes on in the order of its round: a round that began is finished before another is begun.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from django.conf import settings
from django.db.models import F, Q
from django.utils import timezone

from intraskill_web.experiments.models import Attempt, Stage
from jobs.models import SEEN_WITHIN, Host
from jobs.transitions import ACTIVE, WAITING, State

Kind = Literal["gpu", "cpu"]
Room = Mapping[Kind, int]
KINDS: tuple[Kind, ...] = ("gpu", "cpu")
WORK = "work"  # the kind of what is no attempt: replays, exports, orders


@dataclass(frozen=True, slots=True)
class Place:
    """A host and the queue of the right kind on it."""

    host: str
    queue: str


def kind_of(stage: Stage, *, skipped: bool = False) -> Kind:
    """Whether a stage plays or trains the policy (``gpu``) or only reads and writes (``cpu``)."""
    if skipped or stage.kind == "analyse":
        return "cpu"
    round_ = stage.round
    if stage.kind == "freeze":
        return "cpu" if round_.number else "gpu"  # round 0 also plays the baseline
    if stage.kind == "select":
        return "gpu" if round_.number + 1 == round_.experiment.rounds_planned else "cpu"
    return "gpu"


def queue_name(host: str, kind: str) -> str:
    """The queue of one kind of work on one host."""
    return f"{settings.INTRASKILL_QUEUE}:{host}:{kind}"


def queue_names(kinds: Iterable[str] = (*KINDS, WORK)) -> list[str]:
    """The queues that a worker of this host listens to, in the order in which it serves them."""
    return [queue_name(settings.INTRASKILL_HOST_NAME, kind) for kind in kinds]


def place(attempt: Attempt) -> Place | None:
    """The place of the attempt's next job, its GPU leased; None while every allowed host is busy.

    What a host took stays there, because its process and files do. Call in a transaction.
    """
    kind, room = _kind(attempt), rooms(attempt)
    for name in _hosts(attempt, room):
        has_room = name not in room or room[name][kind] > 0 or name == attempt.host
        if has_room and (kind == "cpu" or _lease(name, attempt)):
            return Place(name, queue_name(name, kind))
    return None


def _kind(attempt: Attempt) -> Kind:
    return kind_of(attempt.stage, skipped=bool(attempt.skip_reason))


def _hosts(attempt: Attempt, room: Mapping[str, Room]) -> list[str]:
    """The hosts that may run the attempt, the preferred first."""
    if attempt.host and attempt.state not in WAITING:
        return [attempt.host]
    experiment = attempt.stage.round.experiment
    if experiment.host:
        return [experiment.host]
    names = list(room) or [settings.INTRASKILL_HOST_NAME]
    if attempt.host in names:
        names.insert(0, names.pop(names.index(attempt.host)))
    return names


def rooms(without: Attempt | None = None) -> dict[str, Room]:
    """The room of each host that is up, the least busy first.

    ``without`` is an attempt that does not count. Two queries.
    """
    up = Host.objects.filter(seen_at__gte=timezone.now() - SEEN_WITHIN).exclude(workers=[])
    longest_idle = F("leased_at").asc(nulls_first=True)
    workers = dict(up.order_by(longest_idle, "name").values_list("name", "workers"))
    active = Attempt.objects.filter(state__in=ACTIVE).exclude(host="")
    if without is not None:
        active = active.exclude(pk=without.pk)
    taken: dict[str, list[str]] = defaultdict(list)
    for name, queue in active.values_list("host", "queue"):
        taken[name].append(queue)
    names = sorted(workers, key=lambda name: len(taken[name]))
    return {name: room_of(name, workers[name], taken[name]) for name in names}


def room_of(host: str, workers: Sequence[Mapping[str, Any]], taken: Collection[str]) -> Room:
    """By kind, for how many more attempts a host has workers that listen to it.

    ``workers``: its rows; ``taken``: the queues of the attempts that it has.
    """
    free, room = len(of_stages(host, workers)) - len(taken), {}
    for kind in KINDS:
        busy = sum(queue == queue_name(host, kind) for queue in taken)
        room[kind] = min(free, len(of_kind(host, workers, kind)) - busy)
    return room


def of_kind(host: str, workers: Sequence[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    """Those of a host's workers that take this kind of work."""
    name = queue_name(host, kind)
    return [w for w in workers if not w.get("queues") or name in w["queues"]]


def of_stages(host: str, workers: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those of a host's workers that take attempts, of whatever kind."""
    names = {queue_name(host, kind) for kind in KINDS}
    return [w for w in workers if not w.get("queues") or names & set(w["queues"])]


def hosts_up() -> list[str]:
    """The hosts with a worker that was heard of a moment ago, those with the least work first."""
    return list(rooms())


def hosts_in_reach() -> list[str]:
    """The hosts that are up; before any worker has registered, this one."""
    return hosts_up() or [settings.INTRASKILL_HOST_NAME]


def _lease(host: str, attempt: Attempt) -> bool:
    """Take the host's lease for the attempt; a host without GPUs has nothing to lease."""
    with_gpus = Host.objects.filter(name=host).exclude(gpus=[])
    free = with_gpus.filter(Q(lease=None) | Q(lease=attempt))
    if not free.exists():
        return not with_gpus.exists()
    Host.objects.filter(lease=attempt).exclude(name=host).update(lease=None)  # it moves here
    return bool(free.update(lease=attempt, leased_at=timezone.now()))


def release(attempt: Attempt) -> set[str]:
    """Give back what an attempt that is over had leased; the hosts that have room now."""
    leased = Host.objects.filter(lease=attempt)
    names = set(leased.values_list("name", flat=True))
    if names:
        leased.update(lease=None)
    return names | ({attempt.host} if attempt.host else set())


def unplaced(host: str = "") -> list[Attempt]:
    """Attempts that wait for a host, those of the oldest round first; with ``host`` those that may
    run there."""
    waiting = Attempt.objects.filter(state=State.REQUESTED, queue="")
    if host:
        waiting = waiting.filter(stage__round__experiment__host__in=("", host))
    return list(
        waiting.select_related("stage__round__experiment").order_by("stage__round_id", "id")
    )


def leased() -> set[str]:
    """The hosts whose GPUs somebody holds."""
    held = Host.objects.exclude(lease=None).exclude(gpus=[])
    return set(held.values_list("name", flat=True))


def may_find_place(attempt: Attempt, room: Mapping[str, Room], held: Collection[str]) -> bool:
    """Whether it is worth asking for a place while hosts have this room and these GPUs are held."""
    wanted = attempt.stage.round.experiment.host
    if not wanted and not room:
        return True  # no worker has registered yet
    kind = _kind(attempt)
    return any(
        (name not in room or room[name][kind] > 0) and not (kind == "gpu" and name in held)
        for name in ([wanted] if wanted else room)
    )
