"""Polling that costs nothing when nothing happened.

A page names its state by a token (one indexed query). The script asks for ``?part=live`` with
``If-None-Match``; an equal token is answered 304 before anything else is computed. The answer is a
list of fragments, each with a token of its own text, so that only what changed is replaced.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils.translation import get_language

PARAMETER = "part"


def is_poll(request: HttpRequest) -> bool:
    """Whether the script asks for fragments only."""
    return request.GET.get(PARAMETER) == "live"


def etag(request: HttpRequest, facts: Iterable[object]) -> str:
    """The state's name for this reader: facts, language, and what the page may show to the user."""
    user = request.user
    text = "|".join(map(str, (*facts, get_language(), user.pk)))
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:16]}"'


def unchanged(request: HttpRequest, tag: str) -> HttpResponse | None:
    """304 when a poll already knows ``tag``; None when there is something to send."""
    if is_poll(request) and request.headers.get("If-None-Match") == tag:
        return HttpResponseNotModified(headers={"ETag": tag})
    return None


def finish(response: HttpResponse, tag: str, *, active: bool) -> HttpResponse:
    """Name the state on ``response`` and say whether something is still running."""
    response["ETag"] = tag
    response["X-Active"] = "1" if active else "0"
    response["Cache-Control"] = "private, no-store"
    return response
