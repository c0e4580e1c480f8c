"""Which episodes the behaviour page opens with, and what else it could show.

Experiments differ in policy and world, purposes in what the prompt carried: their episodes are not
pooled unless that is asked for, and then the page says so.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _

from intraskill_web.core.labels import PURPOSES
from intraskill_web.episodes.filters import EpisodeFilter
from intraskill_web.episodes.models import Episode
from intraskill_web.experiments.models import Experiment

FIRST = ("bare", "full", "train")  # the purpose that the page opens with, by preference
MOST_NAMES = 50  # experiments that can be chosen

Choices = list[tuple[str, str]]


def scope(request: HttpRequest) -> EpisodeFilter:
    """The filter of the address; of a bare one the newest experiment and one purpose of it."""
    filter_ = EpisodeFilter.of(request.GET)
    if filter_.values or "by" in request.GET:
        return filter_
    scored = Episode.objects.filter(scored=True, experiment=OuterRef("pk"))
    newest = _with_played(Experiment.objects.filter(Exists(scored)).order_by("-id"))
    if newest is None:
        return filter_
    purpose = next((p for p in (*FIRST, *PURPOSES) if newest[p]), "")
    return EpisodeFilter({"experiment": newest["name"], "purpose": purpose})


def experiments(chosen: str) -> Choices:
    """The experiments that can be chosen, newest first."""
    names = list(Experiment.objects.order_by("-id").values_list("name", flat=True)[:MOST_NAMES])
    return [(name, name) for name in ([chosen] if chosen and chosen not in names else []) + names]


def purposes(filter_: EpisodeFilter) -> Choices:
    """The purposes for which the chosen experiment played; all where none is chosen."""
    chosen = _with_played(Experiment.objects.filter(name=filter_.values.get("experiment", "")))
    return [
        (key, str(word))
        for key, word in PURPOSES.items()
        if chosen is None or key == filter_.values.get("purpose") or chosen[key]
    ]


def pooled(filter_: EpisodeFilter, by: str) -> str:
    """What is put together that is not comparable, as a sentence; empty for nothing."""
    experiments_ = "experiment" not in filter_.values and by != "experiment"
    experiments_ = experiments_ and Experiment.objects.count() > 1
    purposes_ = by != "purpose" and not {"purpose", "arm", "group"} & filter_.values.keys()
    if experiments_ and purposes_:
        return _("Episodes of all experiments and purposes are pooled: choose one of each.")
    if experiments_:
        return _("Episodes of all experiments are pooled: choose one.")
    if purposes_:
        return _("Episodes of all purposes are pooled, whatever their prompt carried: choose one.")
    return ""


def _with_played(experiments_: QuerySet[Experiment]) -> dict[str, Any] | None:
    """The first one's name, and for each purpose whether it has a scored episode of it: one query
    that reads one entry of the index a purpose, however many episodes there are.
    """
    scored = Episode.objects.filter(experiment=OuterRef("pk"), scored=True)
    played = {key: Exists(scored.filter(purpose=key)) for key in PURPOSES}
    first: dict[str, Any] | None = experiments_.annotate(**played).values("name", *played).first()
    return first
