"""Small multiples: one forest for each reward component, all rows in one order on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from intraskill_web.charts.rows import ForestScale
from intraskill_web.charts.svg import Markup, number, tag
from intraskill_web.core.tables import Column, Table
from intraskill_web.gates.evidence import Evidence
from intraskill_web.gates.models import Contribution

STEP = 9  # pixels from row to row


@dataclass(frozen=True, slots=True)
class Component:
    """One component: its drawing, and how many intervals exclude zero."""

    name: str
    drawing: Markup
    excluding_zero: int


def components(rows: Sequence[Contribution], evidence: Evidence) -> list[Component]:
    """A drawing for each component but the reward itself, which the forest shows."""
    known = [row for row in rows if row.intervention_id in evidence.columns]
    names = [name for name in evidence.gate.outcomes if name != "reward"]
    columns = evidence.columns
    ends = [e for row in known for n in names for e in columns[row.intervention_id].outcomes[n]]
    scale = ForestScale.holding(ends)
    return [_component(name, known, evidence, scale) for name in names]


def components_table(rows: Sequence[Contribution], evidence: Evidence | None) -> Table:
    """What the drawings show: one line an intervention and component."""
    columns = [
        Column("intervention_id", _("Intervention"), "mono"),
        Column("component", _("Component"), "mono"),
        Column("coefficient", _("Coefficient"), "effect"),
        Column("low", _("From"), "effect"),
        Column("high", _("To"), "effect"),
    ]
    lines = [
        {
            "intervention_id": row.intervention_id,
            "component": name,
            "coefficient": value,
            "low": low,
            "high": high,
        }
        for row in rows
        if evidence is not None and row.intervention_id in evidence.columns
        for name, (value, low, high) in evidence.columns[row.intervention_id].outcomes.items()
        if name != "reward"
    ]
    return Table("components", columns, lines)


def _component(
    name: str, rows: Sequence[Contribution], evidence: Evidence, scale: ForestScale
) -> Component:
    """All whiskers in two paths and all points in one: x is in per cent of the width."""
    height = STEP * len(rows)
    whiskers: dict[bool, list[str]] = {True: [], False: []}
    points: list[str] = []
    outside = 0
    for i, row in enumerate(rows):
        value, low, high = evidence.columns[row.intervention_id].outcomes[name]
        outside += low * high > 0
        y = number(STEP * i + STEP / 2)
        kept = row.status in ("selected", "held")
        whiskers[kept].append(f"M{number(scale.at(low))} {y}H{number(scale.at(high))}")
        points.append(f"M{number(scale.at(value))} {y}h0")
    zero = number(scale.at(0.0))
    drawn = tag(
        "svg",
        tag("path", class_="zero", d=f"M{zero} 0V{height}"),
        tag("path", class_="ci", d="".join(whiskers[False])),
        tag("path", class_="ci selected", d="".join(whiskers[True])),
        tag("path", class_="points", d="".join(points)),
        width="100%",
        height=height,
        viewBox=f"0 0 100 {height}",
        preserveAspectRatio="none",
    )
    drawing = tag("svg", drawn, class_="fx", height=height, role="img", aria_label=name)
    return Component(name, drawing, outside)
