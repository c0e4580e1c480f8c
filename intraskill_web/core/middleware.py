"""A strict content security policy on every answer: nothing inline, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

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
