"""The page that makes an experiment: begin from a base, see what differs and what it takes."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from intraskill_web.core.access import actor_of
from intraskill_web.core.roles import OPERATE
from intraskill_web.core.twin import asks_json, error_response, json_response
from intraskill_web.experiments.making import create_experiment
from intraskill_web.experiments.new_form import FIRST_BASE, Proposal, blank, proposal
from intraskill_web.experiments.sweeps import bases
from trainer.errors import InputError


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(OPERATE, raise_exception=True)
def new_experiment(request: HttpRequest) -> HttpResponse:
    """``?base=``: the form; a POST says what it would make, and one that saw it makes it.

    A program need not look first.
    """
    if request.method == "POST":
        made = proposal(request.POST)
        if made.error is None and (made.is_seen or asks_json(request)):
            try:
                return _make(request, made)
            except InputError as refusal:
                made.error = refusal
    else:
        try:
            made = blank(request.GET.get("base", FIRST_BASE))
        except InputError as refusal:
            made = blank(FIRST_BASE)
            made.error = refusal
    status = 409 if made.error else 200
    if asks_json(request):
        if made.error:
            return error_response(str(made.error), status)
        return json_response(made.data() | {"bases": bases()})
    context = {
        "section": "experiments",
        "crumbs": [(_("Experiments"), reverse("experiments:list")), (_("New experiment"), "")],
        "proposal": made,
        "bases": bases(),
        "asked": request.method == "POST",
    }
    return render(request, "experiments/new.html", context, status=status)


def _make(request: HttpRequest, made: Proposal) -> HttpResponse:
    assert made.config is not None
    experiment = create_experiment(made.config, actor=actor_of(request))
    address = reverse("experiments:detail", args=[experiment.name])
    if asks_json(request):
        return json_response({"ok": True, "name": experiment.name, "address": address})
    messages.success(request, _("The experiment is ready; start its first round here."))
    return redirect(address)
