"""When work that was handed in counts as lost, so that it may be handed in again."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone

SILENT_S = 120  # neither a queue nor a worker keeps anything alive that says nothing for so long
UNFINISHED = ("requested", "running", "stopping")


class HandedIn:
    """Exports and orders: rows that a worker takes and tells of.

    Handing in twice is safe: of two jobs only the first finds its row requested.
    """

    state: str
    created_at: datetime
    heartbeat_at: datetime | None

    @property
    def unfinished(self) -> bool:
        """Whether it waits for a worker or is with one."""
        return self.state in UNFINISHED

    @property
    def silent(self) -> bool:
        """Whether nothing was heard of it for long, though it is not finished."""
        last = self.heartbeat_at or self.created_at
        return self.unfinished and timezone.now() - last > timedelta(seconds=SILENT_S)
