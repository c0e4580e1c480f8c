"""How long something was worked on, and how long it lay: paused, stopped, or waiting for its turn.

Work is the time of attempts, from their start to their end. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from django.utils import timezone

LEAST_IDLE_S = 60.0  # shorter gaps are those between stages, and not worth a word


class Span(Protocol):
    """An attempt, of which only its times count."""

    @property
    def started_at(self) -> datetime | None: ...
    @property
    def ended_at(self) -> datetime | None: ...


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds of work, and those from start to end. ``since`` is set while it is worked on: the
    moment from which a clock shows the work.
    """

    worked: float
    whole: float
    since: datetime | None = None

    @property
    def idle(self) -> float | None:
        """Seconds in which nobody worked on it; None where that is not worth a word."""
        gap = self.whole - self.worked
        return gap if gap >= LEAST_IDLE_S else None


def took(started: datetime | None, ended: datetime | None, attempts: Iterable[Span]) -> Took | None:
    """What lies between the two moments (the second: now, if None); None for what never began.

    Without any attempt, as where rows come from files, all of it counts as work.
    """
    if started is None:
        return None
    now = timezone.now()
    whole = ((ended or now) - started).total_seconds()
    spans = [(a.started_at, a.ended_at) for a in attempts if a.started_at is not None]
    if not spans:
        return Took(whole, whole, None if ended else started)
    over = sum((end - begun).total_seconds() for begun, end in spans if end is not None)
    running = max((begun for begun, end in spans if end is None), default=None)
    if running is None:
        return Took(over, whole)
    since = running - timedelta(seconds=over)
    return Took((now - since).total_seconds(), whole, since)
