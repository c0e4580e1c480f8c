"""Sweeps: all of them with the form that starts one, and one with its arms side by side."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Max
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from intraskill_web.core import live
from intraskill_web.core.access import actor_of, may_operate
from intraskill_web.core.roles import OPERATE
from intraskill_web.core.twin import asks_json, error_response, json_response, page
from intraskill_web.experiments import sweep_view
from intraskill_web.experiments.models import Experiment, Stage, Sweep
from intraskill_web.experiments.presets import presets
from intraskill_web.experiments.sweep_form import Order, order
from intraskill_web.experiments.sweeps import bases, start_sweep, withdraw
from intraskill_web.experiments.waiting import Line
from trainer.errors import InputError


@require_http_methods(["GET", "HEAD", "POST"])
def sweep_list(request: HttpRequest) -> HttpResponse:
    """The sweeps, newest first; a POST says what one would cost, and one that saw it starts it.

    A program need not look first; the cost stands in its answer.
    """
    wants_json = asks_json(request)
    made = order(request.POST if request.method == "POST" else None)
    if request.method == "POST":
        if not may_operate(request.user):
            raise PermissionDenied
        if not made.error and (made.is_seen or wants_json):
            try:
                sweep = _start(request, made)
            except InputError as refusal:
                made.error = refusal
            else:
                if wants_json:
                    answer = {"ok": True, **sweep_view.summary(sweep)}
                    return json_response(answer | {"estimate": made.estimate_data()})
                messages.success(request, _("The sweep is made; its experiments begin one by one"))
                return redirect("experiments:sweep", name=sweep.name)
        if wants_json:
            return error_response(str(made.error), 409)
    sweeps = Sweep.objects.select_related("owner").annotate(total=Count("experiments"))
    if wants_json:
        return json_response({"sweeps": [sweep_view.summary(sweep) for sweep in sweeps]})
    context = {
        "section": "experiments",
        "sweeps": sweeps,
        "presets": presets(),
        "bases": bases(),
        "order": made,
        "may_operate": may_operate(request.user),
        "crumbs": [(_("Experiments"), reverse("experiments:list")), (_("Sweeps"), "")],
    }
    status = 409 if made.error else 200
    return render(request, "experiments/sweeps.html", context, status=status)


def _start(request: HttpRequest, made: Order) -> Sweep:
    assert made.base is not None
    return start_sweep(
        made.name, made.base, arms=made.arms, seeds=made.seeds, actor=actor_of(request)
    )


@require_safe
def sweep_detail(request: HttpRequest, name: str) -> HttpResponse:
    """The arms of one sweep: mean, spread, paired differences, and every experiment behind them."""
    sweep = get_object_or_404(Sweep.objects.select_related("owner"), name=name)
    own = Experiment.objects.filter(sweep=sweep).aggregate(Max("updated_at"), Count("id"))
    stages = Stage.objects.filter(round__experiment__sweep=sweep).aggregate(Max("updated_at"))
    line = Line.now()
    facts = [*own.values(), *stages.values(), sweep.is_claimed, *line.token()]
    tag = live.etag(request, facts)
    if answer := live.unchanged(request, tag):
        return answer
    view = sweep_view.build(sweep, line)
    polling = live.is_poll(request)
    context = view.context | {
        "section": "experiments",
        "may_operate": may_operate(request.user),
        "polling": polling,
        "etag": tag,
        "active": view.active,
    }
    template = "experiments/_sweep_live.html" if polling else "experiments/sweep.html"
    response = page(request, template, context, view.data, table=view.context["table"])
    return live.finish(response, tag, active=view.active)


@require_POST
@permission_required(OPERATE, raise_exception=True)
def withdraw_sweep(request: HttpRequest, name: str) -> HttpResponse:
    """Take back what of a sweep has not begun."""
    sweep = get_object_or_404(Sweep, name=name)
    wants_json = asks_json(request)
    try:
        n = withdraw(sweep, actor=actor_of(request))
    except InputError as refusal:
        if wants_json:
            return error_response(str(refusal), 409)
        messages.error(request, refusal.reason)
        return redirect("experiments:sweep", name=name)
    if wants_json:
        return json_response({"ok": True, "withdrawn": n})
    messages.success(
        request, ngettext("%(n)d experiment withdrawn", "%(n)d experiments withdrawn", n) % {"n": n}
    )
    if Sweep.objects.filter(pk=sweep.pk).exists():
        return redirect("experiments:sweep", name=name)
    return redirect("experiments:sweeps")
