"""Where a form that was sent from some page leads back to."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme


def way_back(request: HttpRequest, otherwise: str) -> str:
    """The address in the field ``next``; ``otherwise`` where it is none within these pages."""
    back = request.POST.get("next", "")
    ours = url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()})
    return back if ours and back.startswith("/") else otherwise
