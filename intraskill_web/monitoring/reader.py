"""Who asks, read once: the user with what every page wants to know of him, in one query.

The bell's number and the right to operate are columns of the query that finds the session's user,
so that no page pays a query for either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.backends import ModelBackend
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

from intraskill_web.core.prepared import Prepared, moment
from intraskill_web.core.roles import OPERATE
from intraskill_web.monitoring.models import SignalEvent, SignalRead
from intraskill_web.monitoring.signals.inbox import MANY

APP, CODENAME = OPERATE.split(".")


class ReaderBackend(ModelBackend):
    """Django's backend; its users carry ``operates`` and ``unread_signals``."""

    def get_user(self, user_id: Any) -> User | None:
        """The user of a session, or None when there is none or it must not log in."""
        row = READER.row(user_id=user_id)
        user = _user(row) if row else None
        return user if user and self.user_can_authenticate(user) else None


def _user(row: Sequence[Any]) -> User:
    """The user of a row as the driver gives it; SQLite knows neither booleans nor moments."""
    values = list(row)
    for place in YES_NO:
        values[place] = bool(values[place])
    for place in MOMENTS:
        values[place] = moment(values[place])
    *columns, operates, unread = values
    user = User.from_db(connection.alias, COLUMNS, columns)
    user.operates, user.unread_signals = bool(operates), unread  # type: ignore[attr-defined]
    return user


def _reader(user_id: int) -> QuerySet[User]:
    users = User.objects.annotate(operates=_operates(), unread_signals=_unread())
    return users.filter(pk=user_id)


def _operates() -> Exists:
    """Whether the user holds ``experiments.operate``, by himself or through a group."""
    right = Permission.objects.filter(content_type__app_label=APP, codename=CODENAME)
    return Exists(right.filter(Q(group__user=OuterRef("pk")) | Q(user=OuterRef("pk"))))


def _unread() -> Subquery:
    """How many of the newest MANY signals opened since the user came and were not marked."""
    newest = SignalEvent.objects.order_by("-pk").values("pk")[:MANY]
    read = SignalRead.objects.filter(event=OuterRef("pk"), user=OuterRef(OuterRef("pk")))
    unread = SignalEvent.objects.filter(
        ~Exists(read), pk__in=newest, opened_at__gte=OuterRef("date_joined")
    )
    counted = unread.order_by().annotate(n=Func(F("pk"), function="COUNT")).values("n")
    return Subquery(counted, output_field=IntegerField())


FIELDS = User._meta.concrete_fields
COLUMNS = [field.attname for field in FIELDS]
YES_NO = [i for i, field in enumerate(FIELDS) if isinstance(field, BooleanField)]
MOMENTS = [i for i, field in enumerate(FIELDS) if isinstance(field, DateTimeField)]
READER = Prepared(_reader, {"user_id": int})
