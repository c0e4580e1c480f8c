"""Experiments, one experiment, one round, and the actions on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.db import OperationalError
from django.db.models import Count, Max, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from intraskill_web.core import live
from intraskill_web.core.access import may_operate
from intraskill_web.core.back import way_back
from intraskill_web.core.parameters import ParameterError, choice
from intraskill_web.core.prepared import Prepared
from intraskill_web.core.roles import OPERATE
from intraskill_web.core.twin import asks_json, error_response, json_response, page
from intraskill_web.experiments import experiment_view, round_view
from intraskill_web.experiments.actions import ACTIONS
from intraskill_web.experiments.button import Button
from intraskill_web.experiments.list_page import experiment_rows
from intraskill_web.experiments.models import Experiment, Round, Stage
from intraskill_web.experiments.perform import perform
from intraskill_web.experiments.queries import round_status
from intraskill_web.experiments.round_page import load_state, quick_token
from intraskill_web.experiments.states import STAGE_ORDER
from intraskill_web.experiments.waiting import Line, line_of
from intraskill_web.monitoring.attempts.levels import LEVELS, level_of, level_word
from intraskill_web.monitoring.panels.inclusion import LAST
from intraskill_web.monitoring.preflight import run as preflight
from intraskill_web.monitoring.preflight.red import worded_refusal
from jobs.transitions import ACTIVE, WAITING, RoundState
from trainer.errors import InputError


@require_safe
def experiment_list(request: HttpRequest) -> HttpResponse:
    """All experiments, newest first: state, progress, success, bank sizes."""
    facts = Experiment.objects.aggregate(Max("updated_at"), Count("id"))
    stages = Stage.objects.filter(state__in=ACTIVE).aggregate(Max("updated_at"), Count("id"))
    tag = live.etag(request, [*facts.values(), *stages.values()])
    if answer := live.unchanged(request, tag):
        return answer
    rows = experiment_rows()
    active = any(row.experiment.state in (RoundState.RUNNING, RoundState.STOPPING) for row in rows)
    context = {
        "section": "experiments",
        "rows": rows,
        "total": facts["id__count"],
        "polling": live.is_poll(request),
        "etag": tag,
        "active": active,
        "may_operate": may_operate(request.user),
    }
    template = "experiments/_list_live.html" if live.is_poll(request) else "experiments/list.html"
    response = page(request, template, context, lambda: {"experiments": [r.data() for r in rows]})
    return live.finish(response, tag, active=active)


def _detail_token(name: str) -> QuerySet[Any, Any]:
    """Every move touches the experiment; what a stage reports touches one of the newest stages."""
    newest = Stage.objects.filter(round__experiment__name=name).order_by("-pk")
    facts = newest.values_list("updated_at", "round__experiment__updated_at", "state")
    return facts[: len(STAGE_ORDER)]


DETAIL_TOKEN = Prepared(_detail_token, {"name": str})


@require_safe
def experiment_detail(request: HttpRequest, name: str) -> HttpResponse:
    """One experiment: what its checkpoints can do, what became of its chunks, its rounds."""
    named = Experiment.objects.filter(name=name)
    facts = DETAIL_TOKEN.rows(name=name) or list(named.values_list("updated_at"))
    whole = request.GET.get("rounds") == "all" or request.GET.get("format") in ("json", "csv")
    waits = any(row[-1] in WAITING for row in facts)  # what it says then follows others
    line = Line.now() if waits else None
    tag = live.etag(request, [*facts, whole, *(line.token() if line else ())])
    if answer := live.unchanged(request, tag):
        return answer
    experiment = get_object_or_404(named.select_related("owner"))
    operate = may_operate(request.user)
    view = experiment_view.build(experiment, line, operate=operate, whole=whole)
    if request.GET.get("format") == "csv":
        wanted = request.GET.get("panel", "checkpoints")
        tables = view.tables()
        if wanted not in tables:
            raise Http404(wanted)
        return page(request, "", {}, dict, table=tables[wanted])
    context = view.context | {
        "section": "experiments",
        "polling": live.is_poll(request),
        "etag": tag,
    }
    polling = live.is_poll(request)
    _look_ahead(request, experiment, view.context["last"], view.buttons)
    template = "experiments/_detail_live.html" if polling else "experiments/detail.html"
    response = page(request, template, context, view.data)
    return live.finish(response, tag, active=view.active)


@require_safe
def round_detail(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """One round: state, stages, signals, five panels, contributions, log."""
    window = choice(request.GET, "window", ("last",))
    level = level_of(request)
    known = quick_token(name, number) if live.is_poll(request) else None
    if known and (answer := live.unchanged(request, live.etag(request, [*known, window, level]))):
        return answer
    state = load_state(name, number)
    line = line_of([state.active])
    tag = live.etag(request, [*state.token(), window, level, *(line.token() if line else ())])
    if answer := live.unchanged(request, tag):
        return answer
    last = LAST if window == "last" else None
    reader = request.user
    operate = may_operate(reader)
    view = round_view.build(state, line, reader=reader, operate=operate, window=last, level=level)
    polling = live.is_poll(request)
    _look_ahead(request, state.round.experiment, state.round, view.buttons)
    context: dict[str, Any] = view.context | {
        "section": "experiments",
        "levels": _levels(window, level),
        "polling": polling,
        "etag": tag,
    }
    template = "experiments/_round_live.html" if polling else "experiments/round.html"
    response = page(request, template, context, view.data)
    return live.finish(response, tag, active=state.active is not None)


def _levels(window: str, level: str) -> list[tuple[str, str, bool]]:
    """Address, name and whether it is chosen: the levels of the log."""
    kept = {"window": window} if window else {}
    asked = [(key, kept | ({"level": key} if key else {})) for key in LEVELS]
    return [(f"?{urlencode(query)}", level_word(key), key == level) for key, query in asked]


def _look_ahead(
    request: HttpRequest, experiment: Experiment, last: Round | None, shown: Sequence[Button]
) -> None:
    """Where a reader is offered to start a round, begin to look at what it will read."""
    if live.is_poll(request) or "format" in request.GET:
        return
    if any(button.key == "start" and button.enabled for button in shown):
        preflight.look_ahead(experiment, last.number + 1 if last else 0)


@require_POST
@permission_required(OPERATE, raise_exception=True)
def act(request: HttpRequest, name: str, action: str) -> HttpResponse:
    """Start, stop, resume, pause, take the pause back, plan more rounds, go on until, or hold.

    With ``?format=json`` the answer is the round's status, as of ``round_status --json``.
    """
    experiment = get_object_or_404(Experiment, name=name)
    wants_json = asks_json(request)
    if action not in ACTIONS:
        if wants_json:
            known = f"known: {', '.join(ACTIONS)}"
            error = InputError("no such action", field="action", value=action, remedy=known)
            return error_response(str(error), 404)
        raise Http404(action)
    try:
        text = perform(experiment, action, request)
    except InputError as error:
        if wants_json:
            return error_response(str(error), 400 if isinstance(error, ParameterError) else 409)
        said = error.reason + (f". {error.remedy}" if error.remedy else "")
        messages.error(request, worded_refusal(said))
    except OperationalError:  # locked for longer than a page may wait
        busy = _("The database is busy; nothing was changed. Try again in a moment.")
        if wants_json:
            return error_response(busy, 503)
        messages.error(request, busy)
    else:
        if wants_json:
            latest = experiment.rounds.order_by("-number").first()
            status = round_status(latest) if latest else {}
            return json_response({"ok": True, "message": text, **status})
        messages.success(request, text)
    return redirect(way_back(request, reverse("experiments:detail", args=[name])))
