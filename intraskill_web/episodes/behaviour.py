"""The behaviour explorer: a metric by cohort, over exactly the episodes of a list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from intraskill_web.core.definitions import definitions
from intraskill_web.core.labels import PHASES, TERMINATIONS, word
from intraskill_web.core.parameters import choice
from intraskill_web.core.tables import Column, Table
from intraskill_web.core.twin import asks_json, page, refused
from intraskill_web.episodes.behaviour_metrics import SHOWN, value_of
from intraskill_web.episodes.behaviour_scope import experiments, pooled, purposes, scope
from intraskill_web.episodes.cohorts import Bin, Cohort, bins, cohorts
from intraskill_web.episodes.filters import EpisodeFilter
from intraskill_web.episodes.glance import Glance
from intraskill_web.episodes.limits import TooSlow, limited
from intraskill_web.episodes.listed import LISTED
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.parameters import PARAMETERS
from intraskill_web.episodes.profiles import Described, Profile, Share, profiles
from trainer.analysis.behaviour import PHASES as IN_ORDER

COLUMNS = ("task_id", "behaviour", "termination", "success", "reward")  # of Described
MOST = 20_000  # episodes of one page, the newest
SECONDS = 3.0
# cohort → column, and the parameter of the list that asks for one
COHORTS = {
    "round": ("round__number", "round", gettext_lazy("round")),
    "purpose": ("purpose", "purpose", gettext_lazy("purpose")),
    "step": ("step", "step", gettext_lazy("step")),
    "treatment": ("treatment_mode", "treatment", gettext_lazy("treatment")),
    "outcome": ("outcome", "outcome", gettext_lazy("outcome")),
    "checkpoint": ("checkpoint", "checkpoint", gettext_lazy("checkpoint")),
    "experiment": ("experiment__name", "experiment", gettext_lazy("experiment")),
}


@dataclass(frozen=True, slots=True)
class ShownCohort:
    """A cohort with its name in words and the list of its episodes."""

    cohort: Cohort
    name: str
    address: str
    profile: Profile
    shares: list[tuple[Share, str]]
    terminations: list[tuple[str, int, str]]  # in words, how many, the list of them


@dataclass(frozen=True, slots=True)
class ShownBin:
    """A bin of the distribution with its share of the fullest and the list of its episodes."""

    bin: Bin
    share: float
    address: str


@require_safe
def behaviour(request: HttpRequest) -> HttpResponse:
    """One metric of the episodes that a filter finds, by cohort."""
    metric = choice(request.GET, "metric", SHOWN, "model_steps")
    by = choice(request.GET, "by", COHORTS, "round")
    filter_ = scope(request)
    column, parameter, _label = COHORTS[by]
    scored, slow = _scored(filter_, column)
    rows = _valued(scored, metric)
    if not rows:
        filter_.refuse_unknown()
    if filter_.errors and request.GET.get("format") == "csv":
        return refused(request, filter_.errors)
    found, shared = cohorts(rows)
    if by in ("round", "step"):
        found.sort(key=lambda c: (not c.name.isdecimal(), int(c.name) if c.name.isdecimal() else 0))
    values, whole = [value for _name, _task, value in rows], profiles(scored)
    fullest = max((b.count for b in bins(values)), default=1)
    shown = [_shown(filter_, parameter, c, whole[c.name]) for c in found]
    distribution = [
        ShownBin(
            b,
            b.count / max(1, fullest),
            _those(filter_, behaviour=f"{metric}:{b.low!r}..{b.high!r}"),
        )
        for b in bins(values)
    ]
    named = definitions()
    context = {
        "section": "episodes",
        "filter": filter_,
        "chips": list(filter_.chips()),
        "query": filter_.query(),
        "metric": metric,
        "code": f"behaviour_{metric}",
        "metrics": [(key, named[f"behaviour_{key}"].title) for key in SHOWN],
        "defined": named[f"behaviour_{metric}"],
        "experiments": experiments(filter_.values.get("experiment", "")),
        "purposes": purposes(filter_),
        "pooled": pooled(filter_, by),
        "by": by,
        "by_word": COHORTS[by][2],
        "phases": [PHASES[name] for name in IN_ORDER],
        "cohort_names": [(key, str(label)) for key, (_c, _p, label) in COHORTS.items()],
        "cohorts": shown,
        "shared": shared,
        "bins": distribution,
        "n": len(rows),
        "capped": len(scored) >= MOST,
        "slow": slow,
    }
    table = _table([_flat(item.cohort) for item in shown])
    data = {"filter": dict(filter_.values), "metric": metric, "by": by, "n": len(rows),
            "shared_tasks": shared, "cohorts": table.data(),
            "profiles": [item.profile.data() for item in shown], **filter_.refusal()}  # fmt: skip
    failed = filter_.errors and asks_json(request)
    return page(
        request, "episodes/behaviour.html", context, lambda: data,
        table=table, status=400 if failed else 200,
    )  # fmt: skip


def _shown(filter_: EpisodeFilter, parameter: str, cohort: Cohort, profile: Profile) -> ShownCohort:
    own = {parameter: cohort.name, "scored": "yes"}
    return ShownCohort(
        cohort,
        PARAMETERS[parameter].show(cohort.name),
        _list(filter_, **{parameter: cohort.name}),
        profile,
        [(s, _those(filter_, **own, behaviour=f"{s.metric}:1..")) for s in profile.shares],
        [
            (word(TERMINATIONS, name), n, _those(filter_, **own, termination=name))
            for name, n in profile.terminations.items()
        ],
    )


def _scored(filter_: EpisodeFilter, column: str) -> tuple[list[Described], bool]:
    """The newest scored episodes; whether time was over."""
    rows = filter_.apply(Episode.objects.filter(scored=True)).order_by("-pk")
    try:
        with limited(SECONDS):
            if filter_.words:
                rows = rows.filter(pk__in=_holding(filter_))
            found = rows.values_list(column, *COLUMNS)[:MOST]
            return [Described(str(name), *rest) for name, *rest in found], False
    except TooSlow:
        return [], True


def _valued(scored: list[Described], metric: str) -> list[tuple[str, int, float]]:
    """Cohort, task and value of those that have one."""
    return [
        (row.cohort, row.task, value)
        for row in scored
        if (value := value_of(metric, row.behaviour, row)) is not None
    ]


def _holding(filter_: EpisodeFilter) -> list[int]:
    """The newest candidates that hold the words; a page reads a thousand at most."""
    rows = filter_.apply(LISTED).order_by("-pk")[:1000]
    with Glance(filter_.words) as glance:
        return [row.pk for row in rows if glance.hit(row) is not None]


def _list(filter_: EpisodeFilter, **more: str) -> str:
    values = {**filter_.values, **more}
    return reverse("episodes:list") + "?" + urlencode({k: v for k, v in values.items() if v})


def _those(filter_: EpisodeFilter, **more: str) -> str:
    """The list of some of the filter's episodes; nothing where it cannot ask for exactly these."""
    known = more.get("termination", "purchase") in TERMINATIONS
    same = {k: v for k, v in filter_.values.items() if k in more}
    return _list(filter_, **more) if known and same.items() <= more.items() else ""


def _flat(cohort: Cohort) -> dict[str, Any]:
    standard = cohort.standardised
    return {
        "cohort": cohort.name,
        "n": cohort.described.n,
        "mean": cohort.described.mean,
        "low": cohort.described.low,
        "high": cohort.described.high,
        "median": cohort.median,
        "p90": cohort.p90,
        "tasks": standard.n if standard else None,
        "standardised_mean": standard.mean if standard else None,
        "standardised_low": standard.low if standard else None,
        "standardised_high": standard.high if standard else None,
    }


def _table(rows: list[dict[str, Any]]) -> Table:
    names = {
        "cohort": _("cohort"), "n": "n", "mean": _("mean"), "low": "low", "high": "high",
        "median": _("median"), "p90": "p90", "tasks": _("Tasks"),
        "standardised_mean": _("task-standardised"), "standardised_low": "low",
        "standardised_high": "high",
    }  # fmt: skip
    return Table("behaviour", [Column(key, label) for key, label in names.items()], rows)
