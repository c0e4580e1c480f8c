"""Metric series out of the database, with as few queries as a page can do with.

Names are those of training.md §5.2. Rollout steps are one axis, optimiser updates another; the two
are never mixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from django.db.models import Q

from intraskill_web.experiments.models import Round
from intraskill_web.monitoring.models import MetricPoint

PREFIX = "rollout/shopsim/"
LOOK_BACK = 200  # steps of earlier rounds that a panel shows, pale


@dataclass(frozen=True, slots=True)
class Series:
    """name → step → value; names without the prefix ``rollout/shopsim/``."""

    values: Mapping[str, Mapping[int, float]] = field(default_factory=dict)

    def get(self, name: str) -> Mapping[int, float]:
        """The points of ``name``; empty when it was never logged."""
        return self.values.get(name, {})

    def at(self, name: str, step: int) -> float | None:
        """The value at ``step``; None when undefined there."""
        return self.get(name).get(step)

    def last(self, name: str) -> tuple[int, float] | None:
        """The newest point."""
        points = self.get(name)
        if not points:
            return None
        step = max(points)
        return step, points[step]

    def points(self, name: str) -> list[tuple[float, float]]:
        """(step, value) ascending."""
        return [(float(step), value) for step, value in sorted(self.get(name).items())]

    @property
    def steps(self) -> list[int]:
        """Every step that has any point, ascending."""
        return sorted({step for points in self.values.values() for step in points})


def of_round(round_: Round, first_step: int, earlier_names: Iterable[str]) -> tuple[Series, Series]:
    """All metrics of a round, and the named ones of the rounds before it: one query.

    Of the earlier rounds at most LOOK_BACK steps before ``first_step`` are read.
    """
    earlier = Q(
        name__in=[full for name in earlier_names for full in (PREFIX + name, name)],
        step__lt=first_step,
        step__gte=first_step - LOOK_BACK,
    )
    rows = (
        MetricPoint.objects.filter(experiment=round_.experiment)
        .filter(Q(round=round_) | earlier)
        .values_list("round_id", "name", "step", "value")
    )
    own: list[tuple[str, int, float]] = []
    before: list[tuple[str, int, float]] = []
    for round_id, name, step, value in rows:
        (own if round_id == round_.pk else before).append((name, step, value))
    return _series(own), _series(before)


def merged(*parts: Series) -> Series:
    """Several series as one; later parts win."""
    values: dict[str, dict[int, float]] = {}
    for part in parts:
        for name, points in part.values.items():
            values.setdefault(name, {}).update(points)
    return Series(values)


def _series(rows: Iterable[tuple[str, int, float]]) -> Series:
    values: dict[str, dict[int, float]] = {}
    for name, step, value in rows:
        values.setdefault(name.removeprefix(PREFIX), {})[step] = value
    return Series(values)
