"""Sweeps: all of them with the form that starts one, and one with its arms side by side."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from intraskill_web.core.access import may_operate
from intraskill_web.core.twin import json_response, page
from intraskill_web.episodes.links import episodes_url
from intraskill_web.experiments.models import CheckpointScore, Experiment, Sweep
from intraskill_web.experiments.presets import presets
from intraskill_web.experiments.sweep_page import Arm, arms_of, chart, comparison, legend
from intraskill_web.experiments.sweeps import base_config, bases, start_sweep
from trainer.errors import InputError

Text = dict[str, Any]


@require_http_methods(["GET", "HEAD", "POST"])
def sweep_list(request: HttpRequest) -> HttpResponse:
    """The sweeps, newest first; a POST starts one."""
    wants_json = request.GET.get("format") == "json"
    wanted: Text = {"name": "", "base": "mini/demo", "seeds": "1, 2, 3", "arms": None}
    error: InputError | None = None
    if request.method == "POST":
        if not may_operate(request.user):
            raise PermissionDenied
        wanted = {key: request.POST.get(key, "") for key in ("name", "base", "seeds")}
        wanted["arms"] = request.POST.getlist("arms")
        try:
            sweep = _start(request, wanted)
        except InputError as refusal:
            error = refusal
            if wants_json:
                return json_response({"ok": False, "error": str(refusal)}, status=409)
        else:
            if wants_json:
                return json_response({"ok": True, **_summary(sweep)})
            messages.success(request, _("The sweep starts"))
            return redirect("experiments:sweep", name=sweep.name)
    sweeps = Sweep.objects.select_related("owner").annotate(total=Count("experiments"))
    if wants_json:
        return json_response({"sweeps": [_summary(sweep) for sweep in sweeps]})
    context = {
        "section": "experiments",
        "sweeps": sweeps,
        "presets": presets(),
        "bases": bases(),
        "wanted": wanted,
        "error": error,
        "may_operate": may_operate(request.user),
        "crumbs": [(_("Experiments"), reverse("experiments:list")), (_("Sweeps"), "")],
    }
    return render(request, "experiments/sweeps.html", context, status=409 if error else 200)


def _start(request: HttpRequest, wanted: Text) -> Sweep:
    try:
        seeds = [int(text) for text in str(wanted["seeds"]).replace(",", " ").split()]
    except ValueError:
        raise InputError(_("must be whole numbers"), field="seeds", value=wanted["seeds"]) from None
    actor: Any = request.user
    return start_sweep(
        wanted["name"].strip(),
        base_config(wanted["base"]),
        arms=wanted["arms"],
        seeds=seeds,
        actor=actor,
    )


def _summary(sweep: Sweep) -> Text:
    return {
        "sweep": sweep.name,
        "arms": sweep.arms,
        "seeds": sweep.seeds,
        "experiments": [e.name for e in sweep.experiments.order_by("pk")],
    }


@require_safe
def sweep_detail(request: HttpRequest, name: str) -> HttpResponse:
    """The arms of one sweep: mean, spread, paired differences, and every experiment behind them."""
    sweep = get_object_or_404(Sweep.objects.select_related("owner"), name=name)
    experiments = list(sweep.experiments.all())
    scores = list(
        CheckpointScore.objects.filter(experiment__sweep=sweep, arm="bare").select_related("round")
    )
    arms = arms_of(sweep.arms, experiments, scores)
    table = comparison(arms)
    context = {
        "section": "experiments",
        "sweep": sweep,
        "arms": arms,
        "chart": chart(arms),
        "legend": legend(arms),
        "table": table,
        "groups": [(arm, [_run(e, scores) for e in arm.experiments]) for arm in arms],
        "done": sum(e.state == "succeeded" for e in experiments),
        "total": len(experiments),
        "crumbs": [
            (_("Experiments"), reverse("experiments:list")),
            (_("Sweeps"), reverse("experiments:sweeps")),
            (name, ""),
        ],
    }
    return page(
        request, "experiments/sweep.html", context, lambda: _data(sweep, arms, table), table=table
    )


def _run(experiment: Experiment, scores: list[CheckpointScore]) -> Text:
    """One experiment of an arm: its newest bare success, with the episodes behind it."""
    own = [s for s in scores if s.experiment_id == experiment.pk]
    own.sort(key=lambda s: (s.split == "test", s.step))
    newest = own[-1] if own else None
    href = ""
    if newest is not None:
        purpose = "test" if newest.split == "test" else "bare" if newest.step else "baseline"
        href = episodes_url(
            experiment=experiment.name, round=newest.round.number, purpose=purpose, arm="bare"
        )
    return {"experiment": experiment, "newest": newest, "href": href}


def _data(sweep: Sweep, arms: list[Arm], table: Any) -> Text:
    return {
        **_summary(sweep),
        "states": {e.name: e.state for arm in arms for e in arm.experiments},
        "comparison": table.data(),
    }
