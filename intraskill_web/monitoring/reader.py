"""Who has signed in, taken from what the session was read with."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from django.contrib.auth import get_user
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from intraskill_web.monitoring.reader_row import user_of

# Django's ``get_user`` checks the session and tells the backend no more than the user's id.
_asked: ContextVar[Any] = ContextVar("the session whose user is asked for", default=None)


class ReadersMiddleware(AuthenticationMiddleware):
    """Django's, whose user costs no query beyond the session's."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        request.user = SimpleLazyObject(lambda: _user(request))  # type: ignore[assignment]


class ReaderBackend(ModelBackend):
    """Django's backend; the user of a session carries ``operates`` and ``unread_signals``."""

    def get_user(self, user_id: Any) -> User | None:
        """The user of that id, or None when there is none or it must not log in."""
        row = getattr(_asked.get(), "reader", None)
        user = user_of(row) if row else None
        if user is None or user.pk != user_id:
            return super().get_user(user_id)
        return user if self.user_can_authenticate(user) else None


def _user(request: HttpRequest) -> User | AnonymousUser:
    token = _asked.set(request.session)
    try:
        return get_user(request)
    finally:
        _asked.reset(token)
