"""Sessions in the database, as Django's, found by a query that is compiled once.

Every request asks for its session; building that query took longer than answering it.
"""

from __future__ import annotations

from copy import deepcopy
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.utils import timezone

from intraskill_web.core.prepared import Prepared, moment


class SessionStore(DatabaseStore):
    """Django's store with another way to read."""

    def load(self) -> dict[str, Any]:
        """What the session holds; nothing, and no key, where it is gone or has expired."""
        key = self.session_key or ""
        row = None if "\0" in key else KEPT.row(key=key)  # PostgreSQL takes no NUL in a text
        ends = moment(row[1]) if row else None
        if row is None or ends is None or ends <= timezone.now():
            self._session_key = None
            return {}
        return deepcopy(_decoded(row[0], settings.SECRET_KEY))


@lru_cache(256)
def _decoded(data: str, _key: str) -> dict[str, Any]:
    """What a row says. Its signature holds for exactly these bytes, so one look is enough."""
    found: dict[str, Any] = SessionStore().decode(data)
    return found


def _kept(key: str) -> QuerySet[Session, Any]:
    return Session.objects.filter(session_key=key).values_list("session_data", "expire_date")


KEPT = Prepared(_kept, {"key": str})
