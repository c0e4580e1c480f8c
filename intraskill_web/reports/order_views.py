"""Evaluation orders of an experiment: plan, confirm, run, stop, resume."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from intraskill_web.core import live
from intraskill_web.core.access import actor_of, may_operate
from intraskill_web.core.parameters import whole
from intraskill_web.core.roles import OPERATE
from intraskill_web.core.twin import page
from intraskill_web.experiments.models import Experiment
from intraskill_web.reports import orders
from intraskill_web.reports.models import EvaluationOrder
from intraskill_web.reports.order_results import results
from intraskill_web.reports.silence import newest
from trainer.errors import InputError


@require_safe
def order_list(request: HttpRequest, name: str) -> HttpResponse:
    """Every order of an experiment and the form for a new one."""
    experiment = get_object_or_404(Experiment, name=name)
    shown, facts = newest(EvaluationOrder.objects.filter(experiment=experiment))
    tag = live.etag(request, facts)
    if answer := live.unchanged(request, tag):
        return answer
    active = any(row.unfinished for row in shown)
    context = {
        "section": "experiments",
        "experiment": experiment,
        "crumbs": [
            (_("Experiments"), reverse("experiments:list")),
            (experiment.name, reverse("experiments:detail", args=[experiment.name])),
            (_("Evaluations"), ""),
        ],
        "orders": [(row, results(row)) for row in shown],
        "checkpoints": orders.checkpoints(experiment),
        "banks": orders.banks(experiment),
        "playable": experiment.engine == "local" and "imported" not in experiment.config,
        "polling": live.is_poll(request),
        "etag": tag,
        "active": active,
        "may_operate": may_operate(request.user),
    }
    template = "reports/_orders_live.html" if live.is_poll(request) else "reports/orders.html"
    response = page(request, template, context, lambda: {"orders": [_data(row) for row in shown]})
    return live.finish(response, tag, active=active)


def _data(row: EvaluationOrder) -> dict[str, Any]:
    return {
        "name": row.name, "split": row.split, "state": row.state, "done": row.done,
        "total": row.total, "arms": row.arms, "limit": row.limit, "repeats": row.repeats,
        "results": [result.data() for result in results(row)],
        "reason": row.reason, "error": row.error, "created_at": row.created_at,
    }  # fmt: skip


@require_POST
@permission_required(OPERATE, raise_exception=True)
def plan(request: HttpRequest, name: str) -> HttpResponse:
    """Write an order down; it is played when it is confirmed."""
    experiment = get_object_or_404(Experiment, name=name)
    try:
        if request.POST.get("preset") == "four":
            arms = orders.four_conditions(experiment)
        else:
            arms = [orders.chosen_arm(experiment, request.POST.get("checkpoint", ""),
                                      request.POST.get("bank", ""))]  # fmt: skip
        orders.plan_order(
            experiment,
            arms,
            split=request.POST.get("split", ""),
            limit=whole(request.POST, "limit", None),
            repeats=whole(request.POST, "repeats", 1),
            actor=actor_of(request),
        )
    except InputError as error:
        messages.error(request, error.reason)
    return redirect("reports:orders", name=name)


@require_POST
@permission_required(OPERATE, raise_exception=True)
def run(request: HttpRequest, name: str, order: str) -> HttpResponse:
    """Play an order, or go on with it."""
    found = get_object_or_404(EvaluationOrder, experiment__name=name, name=order)
    try:
        orders.run_order(
            found,
            actor=actor_of(request),
            confirmed_name=request.POST.get("confirm", ""),
            reason=request.POST.get("reason", ""),
        )
    except InputError as error:
        messages.error(request, error.reason)
    return redirect("reports:orders", name=name)


@require_POST
@permission_required(OPERATE, raise_exception=True)
def stop(request: HttpRequest, name: str, order: str) -> HttpResponse:
    """Stop an order; what it played stays."""
    found = get_object_or_404(EvaluationOrder, experiment__name=name, name=order)
    try:
        orders.stop_order(found, actor=actor_of(request))
    except InputError as error:
        messages.error(request, error.reason)
    return redirect("reports:orders", name=name)
