"""What every answer has: a strict content security policy (nothing inline, nothing from elsewhere),
the language of its reader, and messages where there are any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.messages.storage import default_storage
from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.utils.functional import SimpleLazyObject, empty

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)


# django-rq's pages, which only staff may open, tick their boxes by a script in the page.
RQ_PAGES = "/queue/"
RQ_POLICY = POLICY.replace("script-src 'self'", "script-src 'self' 'unsafe-inline'").replace(
    "style-src 'self'", "style-src 'self' 'unsafe-inline'"
)


def content_security_policy(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Add the policy where a view has not set one."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        policy = RQ_POLICY if request.path.startswith(RQ_PAGES) else POLICY
        response.headers.setdefault("Content-Security-Policy", policy)
        return response

    return middleware


def reader_language(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """The language that the cookie, else the browser asks for.

    Django's own also looks for languages in addresses, which ours have not, at twice the cost.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        language = translation.get_language_from_request(request)
        translation.activate(language)
        request.LANGUAGE_CODE = language
        response = get_response(request)
        patch_vary_headers(response, ("Accept-Language",))
        response.headers.setdefault("Content-Language", translation.get_language() or language)
        return response

    return middleware


class Messages(MessageMiddleware):
    """Django's, whose storage is made when somebody asks for it."""

    def process_request(self, request: Any) -> None:
        request._messages = SimpleLazyObject(lambda: default_storage(request))

    def process_response(self, request: Any, response: HttpResponse) -> HttpResponse:
        if request._messages._wrapped is empty:
            return response
        answered: HttpResponse = super().process_response(request, response)
        return answered
