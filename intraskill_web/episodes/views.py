"""The episode list and one episode."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from intraskill_web.core.access import may_see_goal
from intraskill_web.core.parameters import ParameterError, whole
from intraskill_web.core.twin import asks_json, json_response, page, refused
from intraskill_web.episodes import compare_page, detail
from intraskill_web.episodes.content import sayings
from intraskill_web.episodes.counting import counted
from intraskill_web.episodes.filters import EpisodeFilter
from intraskill_web.episodes.list_data import episode_data
from intraskill_web.episodes.list_page import EpisodeList, counts_context
from intraskill_web.episodes.listed import listed
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.neighbours import neighbours
from intraskill_web.episodes.order import Order
from intraskill_web.episodes.query import typed_filters
from intraskill_web.episodes.rows import storable
from intraskill_web.episodes.tokens import token_view
from intraskill_web.episodes.traces import ready_trace, shown_trace


@require_safe
def episode_list(request: HttpRequest) -> HttpResponse:
    """Episodes that match the URL's filter, newest first or by a column, page by page.

    ``part=facets`` is the list's count and facets alone, which the page asks for by itself.
    """
    typed = typed_filters(request.GET)
    if typed is not None:
        return redirect(f"{reverse('episodes:list')}?{typed.urlencode()}")
    if request.GET.get("part") == "facets":
        filter_ = EpisodeFilter.of(request.GET)
        found = counts_context(filter_, counted(filter_)) | {"alone": True}
        return render(request, "episodes/_facets.html", found)
    shown = EpisodeList.of(request.GET)
    wanted = request.GET.get("format")
    if shown.filter.errors and wanted == "csv":
        return refused(request, shown.filter.errors)
    status = 400 if shown.filter.errors and wanted == "json" else 200
    return page(
        request,
        "episodes/list.html",
        {} if wanted in ("json", "csv") else shown.context(request.user),
        shown.data,
        table=shown.table() if wanted == "csv" else None,
        status=status,
    )


@require_safe
def episode_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One episode, or two beside each other (``?with=<id>``)."""
    goal = may_see_goal(request.user)
    if asks_json(request):
        return _data(request, pk, goal=goal)
    episode = get_object_or_404(Episode.objects.select_related("experiment", "round"), pk=pk)
    trace, problem = shown_trace(episode, goal=goal)
    filter_, order = EpisodeFilter.of(request.GET), Order.of(request.GET.get("sort", ""))
    if not filter_.values:
        filter_ = EpisodeFilter(detail.own_list(episode))
    around = neighbours(filter_, order, episode)
    context = detail.build(episode, trace, turn=whole(request.GET, "turn", 1), goal=goal)
    rest = [row for row, _end in (*context["siblings"], *context["others"])]
    other = _other(request, episode, rest)
    if other is not None:
        row = whole(request.GET, "row", None)
        other_trace, _problem = shown_trace(other, goal=goal)
        context |= compare_page.build(episode, trace, other, other_trace, row=row)
    query = filter_.query() + (f"&sort={order}" if order.column else "")
    context |= {
        "section": "episodes",
        "problem": problem,
        "filter": filter_,
        "chips": list(filter_.chips()),
        "query": query,
        "around": around,
        "previous_url": _neighbour(around.previous, query),
        "next_url": _neighbour(around.following, query),
        "partner": other or detail.partner(episode, rest),
    }
    return page(request, "episodes/detail.html", context, dict)


@require_safe
def turn_text(request: HttpRequest, pk: int, turn: int) -> HttpResponse:
    """Everything that was said in a turn, whole, as plain text."""
    episode = get_object_or_404(Episode.objects.select_related("experiment"), pk=pk)
    trace, problem = shown_trace(episode, goal=False)
    said = [saying for saying in sayings(trace) if saying.turn == turn]
    if problem or not said:
        raise Http404
    text = "\n\n".join(f"[{saying.role}]\n{saying.text}" for saying in said)
    return HttpResponse(storable(text), content_type="text/plain; charset=utf-8")


@require_safe
def episode_tokens(request: HttpRequest, pk: int) -> HttpResponse:
    """The exact tokens with their loss mask and log-probabilities."""
    episode = get_object_or_404(Episode.objects.select_related("experiment", "round"), pk=pk)
    trace, problem = shown_trace(episode, goal=False)
    view = token_view(trace, whole(request.GET, "start"))
    context = {"section": "episodes", "episode": episode, "problem": problem, "view": view}
    data = {"problem": problem, "tokens": trace.get("tokens")}
    return page(request, "episodes/tokens.html", context, lambda: data)


def _data(request: HttpRequest, pk: int, *, goal: bool) -> HttpResponse:
    """An episode as data. One query; ``with`` says where another begins to differ."""
    row = listed(pk)
    if row is None:
        raise Http404
    trace: Any = ready_trace(row) if goal else None
    problem = ""
    if trace is None:
        trace, problem = shown_trace(row, goal=goal)
    (data,) = episode_data([row])
    data |= {"trace": trace, "problem": problem}
    if "with" in request.GET:
        episode = get_object_or_404(Episode.objects.select_related("experiment"), pk=pk)
        other = _other(request, episode, [])
        if other is not None:
            ours = trace if isinstance(trace, dict) else shown_trace(row, goal=goal)[0]
            data |= compare_page.data(ours, other, shown_trace(other, goal=goal)[0])
    return json_response(data)


def _other(request: HttpRequest, episode: Episode, rest: list[Episode]) -> Episode | None:
    """The episode to compare with; any of the same task may be named. Raises ParameterError."""
    text = request.GET.get("with", "")
    if text in ("", str(episode.pk)):
        return None
    pk = whole(request.GET, "with")
    other = next((row for row in rest if row.pk == pk), None)
    if other is not None:
        other.experiment = episode.experiment
    else:
        other = Episode.objects.select_related("experiment", "round").filter(pk=pk).first()
    if other is None:
        raise ParameterError(_("there is no such episode"), field="with", value=text[:80])
    if not compare_page.same_task(episode, other):
        raise ParameterError(
            _("this episode is of another task; only two of the same task can be compared"),
            field="with", value=pk, remedy=_("Choose one of its siblings on its page"),
        )  # fmt: skip
    return other


def _neighbour(pk: int | None, query: str) -> str:
    if pk is None:
        return ""
    return reverse("episodes:detail", args=[pk]) + (f"?{query}" if query else "")
