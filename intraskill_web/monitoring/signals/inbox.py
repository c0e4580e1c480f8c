"""Questions about the inbox: what is unread, what is open in a round, and marking as read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from intraskill_web.experiments.models import Round
from intraskill_web.monitoring.models import SignalEvent, SignalRead

MANY = 100  # the bell looks at so many of the newest


def for_reader(user: Any) -> QuerySet[SignalEvent]:
    """All signals, each with ``seen``: whether ``user`` marked it as read."""
    return SignalEvent.objects.annotate(seen=_read_by(user))


def _read_by(user: Any) -> Exists:
    return Exists(SignalRead.objects.filter(event=OuterRef("pk"), user_id=user.pk))


def unread(user: Any) -> QuerySet[SignalEvent]:
    """What opened since ``user`` came here and was not marked as read."""
    return for_reader(user).filter(~_read_by(user), opened_at__gte=user.date_joined)


def unread_count(user: Any) -> int:
    """How many of the newest MANY; read with the session's user, else by one query."""
    known = getattr(user, "unread_signals", None)
    if known is None:
        newest = SignalEvent.objects.order_by("-pk").values("pk")[:MANY]
        known = unread(user).filter(pk__in=newest).count()
    return int(known)


def events_of(round_: Round, user: Any) -> dict[tuple[str, str], SignalEvent]:
    """The open signals of a round by kind and subject (one query)."""
    events = for_reader(user).filter(round=round_, closed_at=None)
    return {(event.kind, event.subject): event for event in events}


def mark_read(user: Any, events: Iterable[int]) -> None:
    """Note that ``user`` has seen them; doing it twice changes nothing."""
    SignalRead.objects.bulk_create(
        [SignalRead(user_id=user.pk, event_id=pk) for pk in events], ignore_conflicts=True
    )
