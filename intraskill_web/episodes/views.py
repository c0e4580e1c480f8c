"""The episode list and one episode."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from intraskill_web.core.tables import Column, Table
from intraskill_web.core.twin import json_response, page
from intraskill_web.episodes import detail
from intraskill_web.episodes.facets import facets
from intraskill_web.episodes.filters import EpisodeFilter
from intraskill_web.episodes.listing import list_page, neighbours
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.traces import read_trace
from intraskill_web.experiments.models import Experiment
from trainer.errors import InputError

LIST_FIELDS = (
    "id", "episode_id", "purpose", "arm", "step", "group_index", "sample_id", "task_id", "split",
    "treatment_mode", "skill_ids", "reward", "success", "scored", "termination", "turns", "tokens",
    "invalid_actions", "protocol_errors", "advantage", "admitted", "triage", "instruction",
)  # fmt: skip


@require_safe
def episode_list(request: HttpRequest) -> HttpResponse:
    """Episodes that match the URL's filter, newest first, page by page."""
    filter_ = EpisodeFilter.of(request.GET)
    found = filter_.apply(Episode.objects.all())
    listed = list_page(found, before=_key(request, "before"), after=_key(request, "after"))
    names = list(Experiment.objects.order_by("-id").values_list("name", flat=True)[:50])
    context = {
        "section": "episodes",
        "filter": filter_,
        "chips": list(filter_.chips()),
        "query": filter_.query(),
        "listed": listed,
        "rows": [detail.list_row(episode) for episode in listed.rows],
        "facets": facets(filter_, names),
        "search_text": filter_.values.get("q", ""),
        "crumbs": [(_("Episodes"), "")],
        "costly": None if listed.count or filter_.errors else _costliest(filter_),
    }

    def data() -> dict[str, Any]:
        return {
            "filter": dict(filter_.values),
            "errors": filter_.errors,
            "total": listed.count,
            "more": listed.capped,
            "older": listed.older,
            "newer": listed.newer,
            "results": [episode_data(episode) for episode in listed.rows],
        }

    status = 400 if filter_.errors and request.GET.get("format") == "json" else 200
    table = _table([episode_data(episode) for episode in listed.rows])
    return page(request, "episodes/list.html", context, data, table=table, status=status)


@require_safe
def episode_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One episode: outline, transcript, treatment, reward parts, siblings, tokens."""
    episode = get_object_or_404(Episode.objects.select_related("experiment", "round"), pk=pk)
    trace: dict[str, Any] = {}
    problem = ""
    try:
        trace = read_trace(episode)
    except InputError as error:
        problem = str(error)
    if request.GET.get("format") == "json":
        return json_response(episode_data(episode) | {"trace": trace, "problem": problem})
    filter_ = EpisodeFilter.of(request.GET)
    if not filter_.values:
        filter_ = EpisodeFilter(detail.own_list(episode))
    around = neighbours(filter_, episode)
    context = detail.build(episode, trace) | {
        "section": "episodes",
        "problem": problem,
        "filter": filter_,
        "chips": list(filter_.chips()),
        "query": filter_.query(),
        "around": around,
        "previous_url": _neighbour(around.previous, filter_),
        "next_url": _neighbour(around.following, filter_),
    }
    return page(request, "episodes/detail.html", context, dict)


def episode_data(episode: Episode) -> dict[str, Any]:
    """A row for JSON and CSV."""
    values = {name: getattr(episode, name) for name in LIST_FIELDS}
    return values | {
        "experiment": episode.experiment.name,
        "round": episode.round.number if episode.round else None,
        "url": reverse("episodes:detail", args=[episode.pk]),
    }


def _table(rows: list[dict[str, Any]]) -> Table:
    names = ["experiment", "round", *LIST_FIELDS, "url"]
    flat = [row | {"skill_ids": " ".join(map(str, row["skill_ids"]))} for row in rows]
    return Table("episodes", [Column(name, name) for name in names], flat)


def _costliest(filter_: EpisodeFilter) -> tuple[Any, int] | None:
    """The filter whose removal brings back most episodes, when nothing matches."""
    best: tuple[Any, int] | None = None
    for chip in list(filter_.chips())[:4]:
        n = filter_.apply(Episode.objects.all(), leave_out=chip.key).order_by()[:10_001].count()
        if n and (best is None or n > best[1]):
            best = (chip, n)
    return best


def _key(request: HttpRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _neighbour(pk: int | None, filter_: EpisodeFilter) -> str:
    if pk is None:
        return ""
    query = filter_.query()
    return reverse("episodes:detail", args=[pk]) + (f"?{query}" if query else "")
