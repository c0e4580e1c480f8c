"""Quiet hours: when a message that is due now may leave."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo


def earliest(now: datetime, start: time | None, end: time | None, zone: str) -> datetime:
    """``now``, or the end of the quiet hours when it falls into them.

    The hours are those of a clock in ``zone``; ``start`` after ``end`` means over midnight. Where
    the clock skips or repeats an hour, the end is the first moment that the clock shows it.
    """
    if start is None or end is None or start == end:
        return now
    local = now.astimezone(ZoneInfo(zone))
    clock = local.time().replace(tzinfo=None)
    quiet = start <= clock < end if start < end else clock >= start or clock < end
    if not quiet:
        return now
    day = local.date() + timedelta(days=1 if start > end and clock >= start else 0)
    return max(now, datetime.combine(day, end, tzinfo=ZoneInfo(zone)))
