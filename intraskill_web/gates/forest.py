"""The forest of contributions: rows by rewrite family, one shared scale, zero and cut as lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from intraskill_web.charts.rows import ForestScale, forest_axis, forest_row
from intraskill_web.charts.svg import Markup
from intraskill_web.core import formats
from intraskill_web.core.labels import chunk_status
from intraskill_web.core.tables import Column, Table
from intraskill_web.episodes.links import episodes_url
from intraskill_web.gates.models import KEPT, Contribution, GateRun

STATUS_ORDER = (
    "selected",
    "held",
    "retired",
    "non_positive",
    "rewrite_loser",
    "budget_excluded",
    "not_adopted",
)


@dataclass(frozen=True, slots=True)
class ForestLine:
    """One intervention."""

    item: Contribution
    title: str
    drawing: Markup
    with_href: str
    without_href: str


@dataclass(frozen=True, slots=True)
class Forest:
    """Families of rows in order of their best rank."""

    families: list[list[ForestLine]]
    axis: Markup
    selected: int
    held: int
    total: int
    budget: int | None
    statuses: list[str]
    evidence: bool  # whether selection asks for evidence, or for sign and rank
    estimator: str  # of the standard errors
    excluding_zero: int
    by_chance: str
    table: Table

    @property
    def kept(self) -> int:
        """How many are in the next bank."""
        return self.selected + self.held

    def __iter__(self) -> Iterator[list[ForestLine]]:
        return iter(self.families)


def forest(gate: GateRun, rows: Sequence[Contribution], *, experiment: str) -> Forest:
    """The forest of one complete gate."""
    ordered = families(rows)
    ends = [e for r in rows for e in (r.low, r.high, r.coefficient) if e is not None]
    evidence = gate.profile == "standard"
    scale = ForestScale.holding(ends, None if evidence else _cut(rows))
    lines = [[_line(gate, scale, item, experiment) for item in family] for family in ordered]
    zero_out = [r for r in rows if r.low is not None and r.high is not None and r.low * r.high > 0]
    present = {r.status for r in rows}
    return Forest(
        families=lines,
        axis=forest_axis(scale),
        selected=sum(r.status == "selected" for r in rows),
        held=sum(r.status == "held" for r in rows),
        total=len(rows),
        budget=gate.summary.get("active_skill_budget"),
        statuses=[s for s in STATUS_ORDER if s in present],
        evidence=evidence,
        estimator=_estimator(gate),
        excluding_zero=len(zero_out),
        by_chance=f"{0.05 * len(rows):.1f}",
        table=contributions_table(rows),
    )


def _estimator(gate: GateRun) -> str:
    """How the profile computes standard errors; both have one row a task."""
    if gate.profile == "standard":
        return _("HC3, a task's two masked rollouts against each other")
    return _("HC3, a task's masked rollout against its bare one")


def families(rows: Sequence[Contribution]) -> list[list[Contribution]]:
    """Versions of one chunk together, the best first; families by rank, then by coefficient.

    A standard gate ranks by the shrunk effect, which may differ from the order of coefficients.
    """
    grouped: dict[str, list[Contribution]] = {}
    for row in rows:
        grouped.setdefault(row.logical_chunk_id, []).append(row)

    def height(row: Contribution) -> float:
        return row.coefficient if row.coefficient is not None else float("-inf")

    def place(family: list[Contribution]) -> tuple[float, float]:
        ranks = [row.rank for row in family if row.rank is not None]
        return min(ranks, default=math.inf), -height(family[0])

    members = [sorted(family, key=lambda r: -height(r)) for family in grouped.values()]
    return sorted(members, key=place)


def _cut(rows: Sequence[Contribution]) -> float | None:
    """The smallest coefficient that stayed in: where the budget or the sign drew the line."""
    kept = [r.coefficient for r in rows if r.status in KEPT and r.coefficient is not None]
    return min(kept, default=None)


def _line(gate: GateRun, scale: ForestScale, item: Contribution, experiment: str) -> ForestLine:
    interval = None if item.low is None or item.high is None else (item.low, item.high)
    label = _("%(effect)s, 95 %% interval %(interval)s, %(status)s") % {
        "effect": formats.effect(item.coefficient),
        "interval": formats.interval(item.low, item.high) or _("unknown"),
        "status": chunk_status(item.status),
    }
    query = {"experiment": experiment, "round": gate.round.number, "purpose": "masked"}
    return ForestLine(
        item=item,
        title=item.title or item.intervention_id,
        drawing=forest_row(scale, item.coefficient or 0.0, interval, item.status, label),
        with_href=episodes_url(**query, chunk=item.intervention_id),
        without_href=episodes_url(**query, without=item.intervention_id),
    )


def contributions_table(rows: Sequence[Contribution]) -> Table:
    """Every coefficient in full precision."""
    columns = [
        Column("rank", _("Rank"), "count"),
        Column("intervention_id", _("Intervention"), "mono"),
        Column("logical_chunk_id", _("Chunk"), "mono"),
        Column("operation", _("Operation")),
        Column("coefficient", _("Coefficient"), "effect"),
        Column("se", _("SE"), "rate"),
        Column("low", _("From"), "effect"),
        Column("high", _("To"), "effect"),
        Column("status", _("Status"), "status"),
        Column("with_n", _("With"), "count"),
        Column("without_n", _("Without"), "count"),
    ]
    keys = [column.key for column in columns]
    return Table("contributions", columns, [{key: getattr(r, key) for key in keys} for r in rows])
