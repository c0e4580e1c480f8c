"""When work that was handed in counts as lost, so that people may hand it in again; its lists."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypeVar

from django.db import models
from django.db.models import Count, Max, QuerySet
from django.utils import timezone

from intraskill_web.core.handed_in import HandedIn

SILENT_S = 120  # neither a queue nor a worker keeps anything alive that says nothing for so long


class Told(HandedIn):
    """Exports and orders: rows that a worker takes and tells of.

    Handing in twice is safe: of two jobs only the first finds its row requested.
    """

    created_at: datetime
    heartbeat_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True

    @property
    def silent(self) -> bool:
        """Whether nothing was heard of it for long, though it is not finished."""
        last = self.heartbeat_at or self.created_at
        return self.unfinished and timezone.now() - last > timedelta(seconds=SILENT_S)


Row = TypeVar("Row", bound=Told)
SHOWN = 50  # of a list


def newest(rows: QuerySet[Row]) -> tuple[list[Row], list[object]]:
    """The newest rows, and what tells whether a page of them would be another one. Two queries."""
    facts = rows.aggregate(Max("updated_at"), Count("id"))
    shown = list(rows.select_related("owner")[:SHOWN])
    return shown, [*facts.values(), *(row.pk for row in shown if row.silent)]
