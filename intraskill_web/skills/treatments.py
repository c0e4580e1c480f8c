"""Skill-free and assisted groups of training, round by round: means, gap and interval.

Groups are the unit, because siblings share a task.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Avg, Case, FloatField, Value, When

from intraskill_web.charts.rows import ForestScale, forest_axis, forest_row
from intraskill_web.charts.svg import Markup
from intraskill_web.core import formats
from intraskill_web.episodes.links import episodes_url
from intraskill_web.episodes.models import Episode
from intraskill_web.experiments.models import Experiment
from intraskill_web.monitoring.statistics import Z95

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Training:
    """One round of training: mean success of skill-free and of assisted groups, and their gap."""

    round: int
    free: float
    free_groups: int
    assisted: float
    assisted_groups: int
    gap: float
    interval: Interval
    free_href: str
    assisted_href: str
    empty_groups: int  # of the assisted: those whose draw showed no chunk
    empty_href: str
    drawing: Markup


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """The rounds and the axis that their drawings share."""

    rows: list[Training]
    axis: Markup | None


def training_rows(experiment: Experiment) -> TrainingRows:
    """Every round in which both treatments have at least two groups: one query."""
    found = _measured(experiment)
    reach = ForestScale.holding([e for t in found for e in (t["gap"], *t["interval"])])
    axis = forest_axis(reach) if found else None
    return TrainingRows([_trained(item, reach) for item in found], axis)


def _measured(experiment: Experiment) -> list[dict[str, Any]]:
    """Per round: the mean over groups of each treatment's success, the gap and its interval."""
    success = Case(
        When(success=True, then=Value(1.0)), default=Value(0.0), output_field=FloatField()
    )
    rows = (
        Episode.objects.filter(experiment=experiment, purpose="train", scored=True)
        .values("round__number", "group_index", "treatment_mode")
        .annotate(mean=Avg(success))
        .values_list("round__number", "treatment_mode", "mean")
    )
    rates: dict[int, dict[bool, list[float]]] = {}
    empty: dict[int, int] = {}
    for number, mode, mean in rows:
        rates.setdefault(number, {True: [], False: []})[mode == "skill_free"].append(mean)
        empty[number] = empty.get(number, 0) + (mode == "assisted_empty")
    made = []
    for number in sorted(rates):
        free, assisted = rates[number][True], rates[number][False]
        if len(free) < 2 or len(assisted) < 2:
            continue
        a, b = _mean(free), _mean(assisted)
        half = Z95 * math.sqrt(_variance(free) / len(free) + _variance(assisted) / len(assisted))
        query = {"experiment": experiment.name, "round": number, "purpose": "train"}
        made.append(
            {
                "round": number,
                "free": a,
                "free_groups": len(free),
                "assisted": b,
                "assisted_groups": len(assisted),
                "gap": b - a,
                "interval": (b - a - half, b - a + half),
                "free_href": episodes_url(**query, treatment="skill_free"),
                "assisted_href": episodes_url(**query, treatment="assisted"),
                "empty_groups": empty[number],
                "empty_href": episodes_url(**query, treatment="assisted_empty"),
            }
        )
    return made


def _trained(item: Mapping[str, Any], scale: ForestScale) -> Training:
    label = f"{formats.effect(item['gap'])} {formats.interval(*item['interval'])}"
    drawing = forest_row(scale, item["gap"], item["interval"], "selected", label, height=28)
    return Training(**item, drawing=drawing)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _variance(values: Sequence[float]) -> float:
    middle = _mean(values)
    return sum((v - middle) ** 2 for v in values) / (len(values) - 1)
