"""Replays, exports and orders that nobody works on any more: handed in again by the reconciler.

A job holds the kernel's lock of its row's folder, and so does the trainer that it started; the
kernel ends that with its job where it can (``child.py``). An unfinished row of this host whose lock
is free, and for which no job waits, has lost its worker or its place in the queue. All of this work
goes on where its files end, or begins anew beside them. What lost its worker again and again is
left to people.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext_noop

from intraskill_web.core.handed_in import UNFINISHED, HandedIn, this_host
from intraskill_web.episodes.models import Replay
from intraskill_web.reports.models import EvaluationOrder, Export
from jobs import queue
from trainer.lock import is_held

KINDS: tuple[type[HandedIn], ...] = (Replay, Export, EvaluationOrder)
SETTLE_S = 6.0  # a job that was taken a moment ago may not have its lock yet
MOST_TRIES = 10
GAVE_UP = gettext_noop("its worker was lost ten times; handed in again it goes on")

Key = tuple[str, int, str]


class LeftOver:
    """What one reconciler saw lying about, and since when."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[Key, float] = {}

    def hand_in(self) -> None:
        """Look once, and hand in what lay there for a while.

        Raises DatabaseError, and RedisError when the queue is down.
        """
        now = self._clock()
        found = {_key(row): row for row in _left()}
        self._since = {key: self._since.get(key, now) for key in found}
        old = [row for key, row in found.items() if now - self._since[key] >= SETTLE_S]
        waiting = queue.work_waiting() if old else set()
        for row in old:
            if (row.JOB, row.pk) not in waiting:
                _take_up(row)
                del self._since[_key(row)]


def _key(row: HandedIn) -> Key:
    return row._meta.label, row.pk, row.state


def _left() -> Iterator[HandedIn]:
    """Unfinished rows of this host that nobody works on."""
    for kind in KINDS:
        for row in _rows(kind, state__in=UNFINISHED, host=this_host()):
            if not is_held(row.workplace):
                yield row


def _rows(kind: type[HandedIn], **wanted: Any) -> Any:
    return kind._default_manager.filter(**wanted)


def _take_up(row: HandedIn) -> None:
    """Hand it in again, unless it was to stop, or lost its worker too often."""
    same = _rows(type(row), pk=row.pk, state=row.state)
    if row.state == "stopping":
        same.update(state="stopped", ended_at=timezone.now())
        return
    if row.state == "running":
        if row.tries >= MOST_TRIES:
            same.update(state="failed", error=GAVE_UP, ended_at=timezone.now())
            return
        if not same.update(state="requested", tries=row.tries + 1):
            return
    queue.enqueue_work(row.JOB, row.pk)
