"""How many signals are unread, told with every poll: in a header, so that an answer without news
stays a 304 and costs no query more (the number is read with the session's user)."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from intraskill_web.core.live import is_poll
from intraskill_web.monitoring.signals.inbox import MANY, unread_count

HEADER = "X-Unread"
Handler = Callable[[HttpRequest], HttpResponse]


def shown(n: int) -> str:
    """The number as the bell shows it; empty for none."""
    return f"{MANY - 1}+" if n >= MANY else str(n or "")


def unread_header(get_response: Handler) -> Handler:
    """Middleware: polls of pages are told the number."""

    def handle(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if is_poll(request) and request.user.is_authenticated:
            response[HEADER] = shown(unread_count(request.user))
        return response

    return handle


@require_safe
def unread(request: HttpRequest) -> HttpResponse:
    """The number alone, for pages that do not poll."""
    answer = HttpResponse(status=204, headers={"Cache-Control": "private, no-store"})
    answer[HEADER] = shown(unread_count(request.user))
    return answer
