"""Sessions in the database, read together with their user by one query that is compiled once.

Every request asks for both; two queries, and building them, took longer than answering one.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.db.models import QuerySet
from django.utils import timezone

from intraskill_web.core.models import Session
from intraskill_web.core.prepared import Prepared, moment
from intraskill_web.monitoring.reader_row import with_reader

OWN = ("session_data", "expire_date")


class SessionStore(DatabaseStore):
    """Django's store with another way to read; ``reader`` is the user's row once it was read."""

    reader: Sequence[Any] | None = None

    @classmethod
    def get_model_class(cls) -> type[Session]:
        """Sessions that know whose they are."""
        return Session

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        """The row to save; nobody's until somebody has signed in."""
        row: Session = super().create_model_instance(data)  # type: ignore[assignment]
        row.user_id = data.get(SESSION_KEY)
        return row

    def load(self) -> dict[str, Any]:
        """What the session holds; nothing, and no key, where it is gone or has expired."""
        key = self.session_key or ""
        row = None if "\0" in key else KEPT.row(key=key)  # PostgreSQL takes no NUL in a text
        ends = moment(row[1]) if row else None
        if row is None or ends is None or ends <= timezone.now():
            self._session_key = self.reader = None
            return {}
        self.reader = row[len(OWN) :]
        return deepcopy(_decoded(row[0], settings.SECRET_KEY))


@lru_cache(256)
def _decoded(data: str, _key: str) -> dict[str, Any]:
    """What a row says. Its signature holds for exactly these bytes, so one look is enough."""
    found: dict[str, Any] = SessionStore().decode(data)
    return found


def _kept(key: str) -> QuerySet[Session, Any]:
    return with_reader(Session.objects.filter(session_key=key), *OWN)


KEPT = Prepared(_kept, {"key": str})
