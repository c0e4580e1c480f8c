"""The definitions of the numbers on screen."""

from __future__ import annotations

from dataclasses import asdict

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from intraskill_web.core.definitions import definitions
from intraskill_web.core.twin import asks_json, error_response, page


class SignIn(LoginView):
    """The login; a script that is refused is told so by status and words."""

    template_name = "core/login.html"

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """The form with its errors, or what is wrong with it as JSON."""
        if not asks_json(self.request):
            return super().form_invalid(form)
        errors = [str(error) for found in form.errors.values() for error in found]
        return error_response(" ".join(errors), 401)


@require_safe
def all_definitions(request: HttpRequest) -> HttpResponse:
    """Every definition on one page."""
    entries = definitions()
    context = {"entries": entries.values(), "crumbs": [(_("Definitions"), "")]}
    return page(
        request,
        "core/definitions.html",
        context,
        lambda: {"definitions": [asdict(entry) for entry in entries.values()]},
    )


@require_safe
def one_definition(request: HttpRequest, key: str) -> HttpResponse:
    """One definition, where a ``?`` leads."""
    entry = definitions().get(key)
    if entry is None:
        raise Http404(key)
    crumbs = [(_("Definitions"), reverse("core:definitions")), (entry.title, "")]
    context = {"entries": [entry], "only": entry, "crumbs": crumbs}
    return page(request, "core/definitions.html", context, lambda: asdict(entry))
