"""Whoever asks for JSON is answered in JSON, whatever goes wrong: ``{"ok": false, "error": …}``.

``?format=json`` asks for it, and so does an ``Accept`` header that prefers it to HTML: such a
request is read as if it carried ``format=json``, so views know one way only. Statuses: 400 a
parameter that is not understood, 401 no session, 403 not allowed, 404, 405, 500.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.core.exceptions import PermissionDenied
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext as _
from django.views import csrf

from intraskill_web.core.held import refuse_unheld
from intraskill_web.core.missing import missing
from intraskill_web.core.parameters import ParameterError
from intraskill_web.core.twin import asks_json, error_response


class JsonErrors:
    """The middleware; it stands outside of what refuses a request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if "format" not in request.GET and _prefers_json(request):
            query = request.GET.copy()
            query["format"] = "json"
            request.GET = query  # type: ignore[assignment]
        response = self.get_response(request)
        if request.META.get("HTTP_ACCEPT"):
            patch_vary_headers(response, ("Accept",))
        if response.status_code < 400 or not asks_json(request) or _is_json(response):
            return response
        error = error_response(_words(response.status_code, request), response.status_code)
        if allow := response.headers.get("Allow"):
            error.headers["Allow"] = allow
        return error

    def process_view(
        self, request: HttpRequest, view: Any, args: Sequence[Any], values: Mapping[str, Any]
    ) -> HttpResponse | None:
        """What no database holds is asked of no view."""
        try:
            refuse_unheld(request, values)
        except ParameterError as error:
            return self.process_exception(request, error)
        return None

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """What a view could not understand or find, in its own words; all else takes its course.

        A database that was locked for longer than a page may wait is no fault of the page (503).
        """
        if isinstance(error, OperationalError) and "locked" in str(error):
            return _busy(request)
        if isinstance(error, ParameterError):
            return _not_understood(request, error)
        if not asks_json(request):
            return None
        if isinstance(error, Http404):
            return error_response(missing(request).words, 404)
        if isinstance(error, PermissionDenied):
            return error_response(str(error) or _words(403, request), 403)
        return None


class LoginRequired(LoginRequiredMiddleware):
    """A script without a session is told so; a browser is led to the login."""

    def handle_no_permission(  # type: ignore[override]  # the stubs know of redirects only
        self, request: HttpRequest, view_func: Any
    ) -> HttpResponseBase:
        if asks_json(request):
            return error_response(_words(401, request), 401)
        return super().handle_no_permission(request, view_func)


def _not_understood(request: HttpRequest, error: ParameterError) -> HttpResponse:
    if asks_json(request):
        return error_response(str(error), 400)
    return render(request, "core/not_understood.html", {"error": error}, status=400)


def _busy(request: HttpRequest) -> HttpResponse:
    busy = _("The database is busy; nothing was changed. Try again in a moment.")
    if asks_json(request):
        return error_response(busy, 503)
    return render(request, "core/busy.html", {"busy": busy}, status=503)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form without its token: in JSON with how to send it, else as a page."""
    if not asks_json(request):
        return csrf.csrf_failure(request, reason=reason)
    remedy = _("Send the value of the CSRF cookie as the header X-CSRFToken")
    return error_response(f"{reason.rstrip('.')}. {remedy}", 403)


def _prefers_json(request: HttpRequest) -> bool:
    return request.get_preferred_type(["text/html", "application/json"]) == "application/json"


def _is_json(response: HttpResponse) -> bool:
    return response.headers.get("Content-Type", "").startswith("application/json")


def _words(status: int, request: HttpRequest) -> str:
    if status == 401:
        return _("not signed in; sign in at /login/ and send the session's cookie")
    if status == 403:
        return _("your role may look at this, not change it; an admin can give you another")
    if status == 404:
        return missing(request).words
    if status == 405:
        return _("%(method)s is not answered here") % {"method": request.method}
    if status < 500:
        return _("the request is not understood")
    return _("the page failed; what happened stands in the log of the web server")
