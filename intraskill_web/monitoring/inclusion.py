"""Inclusion of each chunk against its target rho: counts, rates and the binomial band.

The denominator is the assisted groups, empty ones included; skill-free groups are judged apart,
against q and all groups (training.md §3, §5.2). Rates are logged a step; the counts behind them
are whole numbers and are recovered exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from intraskill_web.core.tables import Column
from intraskill_web.monitoring.series import Series
from intraskill_web.monitoring.statistics import binomial_band

SKILL_FREE = ""  # the id of the row that compares the skill-free rate with q


@dataclass(frozen=True, slots=True)
class StepCount:
    """At one step: ``shown`` of ``n`` groups."""

    step: int
    shown: int
    n: int

    @property
    def rate(self) -> float:
        return self.shown / self.n


@dataclass(frozen=True, slots=True, kw_only=True)
class Inclusion:
    """``shown`` of ``n`` groups against the target rho."""

    shown: int
    n: int
    target: float

    @property
    def observed(self) -> float | None:
        """shown / n; None before any group was seen."""
        return self.shown / self.n if self.n else None

    @property
    def band(self) -> tuple[float, float] | None:
        """Where 95 % of such rates lie when the target is true."""
        return binomial_band(self.n, self.target) if self.n else None

    @property
    def verdict(self) -> str:
        """``in``, ``below``, ``above``, or empty before any group was seen."""
        if self.observed is None or self.band is None:
            return ""
        if self.observed < self.band[0]:
            return "below"
        return "above" if self.observed > self.band[1] else "in"

    def cells(self) -> dict[str, Any]:
        """What tables say of it, by the keys of ``columns``."""
        low, high = self.band or (None, None)
        return {
            "observed": self.observed,
            "target": self.target,
            "low": low,
            "high": high,
            "shown": self.shown,
            "n": self.n,
            "verdict": self.verdict,
        }


def columns() -> list[Column]:
    """The columns of ``Inclusion.cells``."""
    return [
        Column("observed", _("Observed"), "rate"),
        Column("target", _("Target"), "rate"),
        Column("low", _("Band from"), "rate"),
        Column("high", _("Band to"), "rate"),
        Column("shown", _("Groups with it"), "count"),
        Column("n", _("Groups"), "count"),
        Column("verdict", _("Status")),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class InclusionRow(Inclusion):
    """One chunk (or the skill-free row) over all its steps."""

    skill_id: str
    counts: Sequence[StepCount]

    def bands(self) -> list[tuple[float, float]]:
        """The band of each step's own n, for the sparkline."""
        return [binomial_band(count.n, self.target) for count in self.counts]

    def outside(self) -> list[int]:
        """Places of the steps whose rate left its own band."""
        return [
            i
            for i, (count, band) in enumerate(zip(self.counts, self.bands(), strict=True))
            if not band[0] <= count.rate <= band[1]
        ]


def inclusion_rows(
    series: Series, q: float, targets: Mapping[str, float], *, last: int | None = None
) -> list[InclusionRow]:
    """The skill-free row and one row a chunk, over all steps or the ``last`` ones."""
    steps = [s for s in series.steps if series.at("group_count", s) is not None]
    if last is not None:
        steps = steps[-last:]
    groups = {s: round(series.get("group_count")[s]) for s in steps}
    free = {s: round((series.at("skill_free_group_rate", s) or 0.0) * groups[s]) for s in steps}
    rows = [_row(SKILL_FREE, q, [StepCount(s, free[s], groups[s]) for s in steps if groups[s]])]
    for skill_id, rho in targets.items():
        rates = series.get(f"chunk/{skill_id}/inclusion_rate")
        counts = [
            StepCount(s, round(rates[s] * (groups[s] - free[s])), groups[s] - free[s])
            for s in steps
            if s in rates and groups[s] > free[s]
        ]
        rows.append(_row(skill_id, rho, counts))
    return rows


def _row(skill_id: str, target: float, counts: list[StepCount]) -> InclusionRow:
    return InclusionRow(
        skill_id=skill_id,
        target=target,
        counts=counts,
        shown=sum(c.shown for c in counts),
        n=sum(c.n for c in counts),
    )
