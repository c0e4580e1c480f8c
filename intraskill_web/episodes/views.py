"""The episode list and one episode."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from intraskill_web.core.twin import json_response, page
from intraskill_web.episodes import detail
from intraskill_web.episodes.filters import EpisodeFilter
from intraskill_web.episodes.list_page import EpisodeList, episode_data
from intraskill_web.episodes.listing import neighbours
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.order import Order
from intraskill_web.episodes.query import typed_filters
from intraskill_web.episodes.traces import read_trace
from trainer.errors import InputError


@require_safe
def episode_list(request: HttpRequest) -> HttpResponse:
    """Episodes that match the URL's filter, newest first or by a column, page by page."""
    typed = typed_filters(request.GET)
    if typed is not None:
        return redirect(f"{reverse('episodes:list')}?{typed.urlencode()}")
    listed = EpisodeList.of(request.GET)
    wants_data = request.GET.get("format") in ("json", "csv")
    status = 400 if listed.filter.errors and request.GET.get("format") == "json" else 200
    return page(
        request,
        "episodes/list.html",
        {} if wants_data else listed.context(request.user),
        listed.data,
        table=listed.table(),
        status=status,
    )


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
    filter_, order = EpisodeFilter.of(request.GET), Order.of(request.GET.get("sort", ""))
    if not filter_.values:
        filter_ = EpisodeFilter(detail.own_list(episode))
    around = neighbours(filter_, order, episode)
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


def _neighbour(pk: int | None, filter_: EpisodeFilter) -> str:
    if pk is None:
        return ""
    query = filter_.query()
    return reverse("episodes:detail", args=[pk]) + (f"?{query}" if query else "")
