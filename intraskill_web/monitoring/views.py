"""A panel's table twin, the zoom page and the reduced series behind it."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from intraskill_web.core import formats
from intraskill_web.core.finders import plotly_folder
from intraskill_web.core.middleware import POLICY
from intraskill_web.core.parameters import choice, number
from intraskill_web.core.twin import json_response, page
from intraskill_web.experiments.models import Experiment
from intraskill_web.experiments.round_page import load_data, load_gates, load_state
from intraskill_web.experiments.round_view import crumbs, round_panel
from intraskill_web.monitoring.buckets import reduce
from intraskill_web.monitoring.models import MetricPoint, UpdatePoint
from intraskill_web.monitoring.series import PREFIX

PANELS = {
    "outcome": "success_rate",
    "inclusion": "inclusion_rate",
    "frontier": "all_wrong",
    "health": "scored_rate",
    "gate": "paired_difference",
}
AXES = ("step", "update")
MAX_PIXELS = 4000
MAX_METRICS = 8


@require_safe
def panel_page(request: HttpRequest, name: str, number: int, key: str) -> HttpResponse:
    """One panel of a round as a table: every number of the chart, with CSV and JSON."""
    if key not in PANELS:
        raise Http404(key)
    state = load_state(name, number)
    panel = round_panel(load_data(state.round), key, load_gates(state.round))
    if panel is None:
        raise Http404(key)
    titles = {
        "outcome": _("Outcome"), "inclusion": _("Inclusion against target"),
        "frontier": _("Failure frontier"), "health": _("Health"), "gate": _("Gate"),
    }  # fmt: skip
    context = {
        "section": "experiments",
        "panel": panel,
        "title": titles[key],
        "help_key": PANELS[key],
        "round": state.round,
        "crumbs": crumbs(state.round, (titles[key], "")),
    }
    return page(
        request,
        "monitoring/panel.html",
        context,
        lambda: {"experiment": name, "round": number, "panel": key, "rows": panel.table.data()},
        table=panel.table,
    )


@require_safe
def zoom(request: HttpRequest, name: str) -> HttpResponse:
    """Interactive curves: metrics, window and legend are in the URL."""
    experiment = get_object_or_404(Experiment, name=name)
    axis = _axis(request)
    names = _names(experiment, axis)
    chosen = request.GET.getlist("metric")[:MAX_METRICS]
    for metric in chosen:
        choice({"metric": metric}, "metric", names)
    if not chosen:
        wanted = ["success_rate", "strict_reward_mean"] if axis == "step" else ["loss"]
        chosen = [m for m in wanted if m in names] or names[:1]
    query = "&".join(f"metric={m}" for m in chosen)
    context = {
        "section": "experiments",
        "experiment": experiment,
        "names": names,
        "chosen": chosen,
        "most": MAX_METRICS,
        "axis": axis,
        "has_plotly": plotly_folder() is not None,
        "series_url": f"{reverse('monitoring:series', args=[name])}?axis={axis}&{query}",
        "crumbs": [
            (_("Experiments"), reverse("experiments:list")),
            (name, reverse("experiments:detail", args=[name])),
            (_("Zoom"), ""),
        ],
    }
    response = page(
        request, "monitoring/zoom.html", context, lambda: {"axis": axis, "metrics": names}
    )
    # plotly writes styles into the page; nothing on this page comes from a model or a log.
    loose = POLICY.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")
    response["Content-Security-Policy"] = loose
    return response


@require_safe
def series(request: HttpRequest, name: str) -> HttpResponse:
    """Series reduced to ``px`` buckets inside ``x0``…``x1``: minimum, maximum and last of each."""
    experiment = get_object_or_404(Experiment, name=name)
    axis = _axis(request)
    pixels = min(MAX_PIXELS, max(10, int(number(request.GET, "px", 800))))
    window = None
    if "x0" in request.GET and "x1" in request.GET:
        window = (number(request.GET, "x0", 0), number(request.GET, "x1", 0))
    shown = total = 0
    made = []
    for metric, points in _points(experiment, axis, request.GET.getlist("metric")[:MAX_METRICS]):
        reduced = reduce(points, max(1, pixels // 2), window)
        shown, total = shown + reduced.shown, total + reduced.of
        made.append(
            {
                "name": metric,
                "x": reduced.x,
                "last": reduced.last,
                "low": reduced.low,
                "high": reduced.high,
                "shown": reduced.shown,
                "of": reduced.of,
            }
        )
    text = _("%(shown)s of %(total)s points") % {
        "shown": formats.count(shown), "total": formats.count(total),
    }  # fmt: skip
    label = _("rollout step") if axis == "step" else _("optimiser update")
    return json_response({"axis": axis, "x_label": label, "shown": text, "series": made})


def _points(
    experiment: Experiment, axis: str, metrics: list[str]
) -> list[tuple[str, list[tuple[float, float]]]]:
    """The points of each metric, ascending: one query. Names may be short or full.

    Raises ParameterError for one that the experiment never logged.
    """
    model: Any = MetricPoint if axis == "step" else UpdatePoint
    asked = {name: metric for metric in metrics for name in (metric, PREFIX + metric)}
    rows = model.objects.filter(experiment=experiment, name__in=asked)
    found: dict[str, list[tuple[float, float]]] = {metric: [] for metric in metrics}
    for name, x, y in rows.order_by(axis).values_list("name", axis, "value"):
        found[asked[name]].append((float(x), y))
    for metric in (metric for metric in metrics if not found[metric]):
        choice({"metric": metric}, "metric", _names(experiment, axis))
    return [(metric, found[metric]) for metric in metrics]


def _names(experiment: Experiment, axis: str) -> list[str]:
    model: Any = MetricPoint if axis == "step" else UpdatePoint
    rows = model.objects.filter(experiment=experiment).order_by("name")
    return [n.removeprefix(PREFIX) for n in rows.values_list("name", flat=True).distinct()]


def _axis(request: HttpRequest) -> str:
    return choice(request.GET, "axis", AXES, "step")
