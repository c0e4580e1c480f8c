"""Pages for going on otherwise: the next round or a stage with other settings, a stage left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from intraskill_web.core.access import actor_of
from intraskill_web.core.labels import stage_label
from intraskill_web.core.roles import OPERATE
from intraskill_web.core.twin import asks_json, error_response, json_response
from intraskill_web.experiments import rework
from intraskill_web.experiments.actions import start_button
from intraskill_web.experiments.models import Experiment, Stage
from intraskill_web.experiments.queries import round_status
from intraskill_web.experiments.rework_forms import Draft, draft, values_of
from intraskill_web.experiments.round_view import crumbs
from intraskill_web.monitoring.preflight.red import worded_refusal
from trainer.errors import InputError


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(OPERATE, raise_exception=True)
def change_next_round(request: HttpRequest, name: str) -> HttpResponse:
    """The next round as a clone of the last: edit, see the difference, start."""
    experiment = get_object_or_404(Experiment, name=name)
    last = experiment.rounds.order_by("-number").first()
    before = last.settings if last else experiment.config
    number = last.number + 1 if last else 0
    may = start_button(experiment, last)
    home = reverse("experiments:detail", args=[name])
    trail = [(_("Experiments"), reverse("experiments:list")), (name, home), (_("Next round"), "")]
    context = {
        "experiment": experiment,
        "crumbs": trail,
        "heading": _("Round %(n)d with changes") % {"n": number},
        "intro": _(
            "Filled from the settings of the last round. What you change holds from now on."
        ),
        "go": may.label,
        "busy": may.busy,
        "hindrance": "" if may.enabled else may.why,
        "more_rounds": number >= experiment.rounds_planned,
        "back": home,
    }

    def start(values: dict[str, Any]) -> str:
        round_ = rework.start_changed_round(experiment, values, actor=actor_of(request))
        return reverse("experiments:round", args=[name, round_.number])

    def change(values: dict[str, Any]) -> dict[str, list[Any]]:
        return rework.change_of_next(experiment, values)

    return _edit(request, experiment, draft(before, request.POST, change), start, context)


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(OPERATE, raise_exception=True)
def retry_stage(request: HttpRequest, name: str, number: int, kind: str) -> HttpResponse:
    """A stage that ended badly, tried again with other settings for the rest of the round."""
    stage = _stage(name, number, kind)
    label = stage_label(kind)
    context = {
        "experiment": stage.round.experiment,
        "crumbs": crumbs(stage.round, (_("Retry with changes"), "")),
        "heading": _("%(stage)s again, with changes") % {"stage": label},
        "intro": _(
            "A new attempt. Where the stage itself reads a changed value, what its former "
            "attempts made is set aside; the changes hold for the rest of the round and after it."
        ),
        "go": _("Retry %(stage)s") % {"stage": label.lower()},
        "back": reverse("experiments:round", args=[name, number]),
    }

    def start(values: dict[str, Any]) -> str:
        confirmed = request.POST.get("stop_job", "")
        rework.retry_with_changes(stage, values, stop_job=confirmed, actor=actor_of(request))
        return reverse("experiments:round", args=[name, number])

    def change(values: dict[str, Any]) -> dict[str, list[Any]]:
        return rework.change_of_rest(stage, values)

    made = draft(stage.round.settings, request.POST, change)
    try:
        context["left_job"] = rework.job_in_the_way(stage, made.changes)
    except InputError as error:  # a damaged record of the job
        made.error = str(error)
    return _edit(request, stage.round.experiment, made, start, context)


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(OPERATE, raise_exception=True)
def skip_stage(request: HttpRequest, name: str, number: int, kind: str) -> HttpResponse:
    """Go on without a stage, with a reason that stays beside it."""
    stage = _stage(name, number, kind)
    error, reason = rework.why_not_skipped(stage), request.POST.get("reason", "")
    if request.method == "POST":
        try:
            rework.skip_stage(stage, reason, actor=actor_of(request))
        except InputError as refusal:
            if asks_json(request):
                return _refused(refusal)
            error = refusal.reason
        else:
            if asks_json(request):
                return _done(stage.round.experiment)
            messages.success(request, _("Goes on without the stage"))
            return redirect("experiments:round", name=name, number=number)
    context = {
        "section": "experiments",
        "stage": stage,
        "label": stage_label(kind),
        "consequence": CONSEQUENCES.get(kind, lambda: "")(),
        "error": error,
        "reason": reason,
        "crumbs": crumbs(stage.round, (_("Skip a stage"), "")),
        "back": reverse("experiments:round", args=[name, number]),
    }
    status = 409 if request.method == "POST" else 200
    return render(request, "experiments/skip.html", context, status=status)


CONSEQUENCES: dict[str, Callable[[], str]] = {
    "analyse": lambda: _("There will be no candidates; the gate tests the chunks of now only."),
    "gate": lambda: _("The bank stays as it was; candidates of this round are not adopted."),
    "select": lambda: _("The test split is not played."),
}


def _edit(
    request: HttpRequest,
    experiment: Experiment,
    made: Draft,
    start: Callable[[dict[str, Any]], str],
    context: dict[str, Any],
) -> HttpResponse:
    """Show the form, or do what it asks for when its changes were seen (a program need not see)."""
    if request.method == "POST" and (made.is_seen or asks_json(request)):
        try:
            address = start(values_of({"config": made.text}))
        except InputError as refusal:
            if asks_json(request):
                return _refused(refusal)
            made.error = worded_refusal(refusal.reason)
            made.error_field = str(refusal.field or "")
        else:
            if asks_json(request):
                return _done(experiment)
            messages.success(request, _("Started"))
            return redirect(address)
    elif asks_json(request):
        left = context.get("left_job")
        return json_response(made.data() | ({"left_job": asdict(left)} if left else {}))
    context |= {"section": "experiments", "draft": made, "asked": request.method == "POST"}
    status = 409 if made.error and request.method == "POST" else 200
    return render(request, "experiments/rework.html", context, status=status)


def _stage(name: str, number: int, kind: str) -> Stage:
    rows = Stage.objects.select_related("round__experiment")
    return get_object_or_404(rows, round__experiment__name=name, round__number=number, kind=kind)


def _refused(error: InputError) -> HttpResponse:
    return error_response(str(error), 409)


def _done(experiment: Experiment) -> HttpResponse:
    latest = experiment.rounds.order_by("-number").first()
    return json_response({"ok": True, **(round_status(latest) if latest else {})})
