"""Who asks, read with the session: the user with what every page wants to know of him.

The bell's number and his rights are columns of the query that finds the session, so that no page
pays a query for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import Permission, User
from django.db import connection
from django.db.models import (
    BooleanField,
    DateTimeField,
    Exists,
    F,
    Func,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
)

from intraskill_web.core.models import Session
from intraskill_web.core.prepared import moment
from intraskill_web.core.roles import OPERATE, SEE_GOAL
from intraskill_web.monitoring.models import SignalEvent, SignalRead
from intraskill_web.monitoring.signals.inbox import MANY

FIELDS = User._meta.concrete_fields
COLUMNS = [field.attname for field in FIELDS]
YES_NO = [i for i, field in enumerate(FIELDS) if isinstance(field, BooleanField)]
MOMENTS = [i for i, field in enumerate(FIELDS) if isinstance(field, DateTimeField)]


def with_reader(sessions: QuerySet[Session], *own: str) -> QuerySet[Session, Any]:
    """Tuples: the columns ``own`` of sessions, then those of which ``user_of`` makes their user."""
    known = sessions.annotate(
        operates=_holds(OPERATE), sees_goals=_holds(SEE_GOAL), unread_signals=_unread()
    )
    columns = (f"user__{field.name}" for field in FIELDS)
    return known.values_list(*own, *columns, "operates", "sees_goals", "unread_signals")


def user_of(row: Sequence[Any]) -> User | None:
    """The user of a row as the driver gives it; SQLite knows neither booleans nor moments."""
    if row[0] is None:
        return None
    values = list(row)
    for place in YES_NO:
        values[place] = bool(values[place])
    for place in MOMENTS:
        values[place] = moment(values[place])
    *columns, operates, sees_goals, unread = values
    user: Any = User.from_db(connection.alias, COLUMNS, columns)
    user.operates, user.sees_goals = bool(operates), bool(sees_goals)
    user.unread_signals = unread
    found: User = user
    return found


def _holds(permission: str) -> Exists:
    """Whether the user holds it, by himself or through a group."""
    app, codename = permission.split(".")
    right = Permission.objects.filter(content_type__app_label=app, codename=codename)
    user = OuterRef("user_id")
    return Exists(right.filter(Q(group__user=user) | Q(user=user)))


def _unread() -> Subquery:
    """How many of the newest MANY signals opened since the user came and were not marked."""
    newest = SignalEvent.objects.order_by("-pk").values("pk")[:MANY]
    read = SignalRead.objects.filter(event=OuterRef("pk"), user=OuterRef(OuterRef("user_id")))
    unread = SignalEvent.objects.filter(
        ~Exists(read), pk__in=newest, opened_at__gte=OuterRef("user__date_joined")
    )
    counted = unread.order_by().annotate(n=Func(F("pk"), function="COUNT")).values("n")
    return Subquery(counted, output_field=IntegerField())
