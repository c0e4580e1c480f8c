"""When work that was handed in counts as lost, so that people may hand it in again."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models
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
