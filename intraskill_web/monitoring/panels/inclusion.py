"""Inclusion of each chunk against its target rho, and of the skill-free groups against q."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from intraskill_web.charts.rows import inclusion_row, sparkline
from intraskill_web.charts.svg import Markup
from intraskill_web.core.tables import Column, Table
from intraskill_web.monitoring.inclusion import (
    SKILL_FREE,
    InclusionRow,
    columns,
    inclusion_rows,
)
from intraskill_web.monitoring.panels.base import Panel, RoundData

LAST = 20  # steps of the short window


@dataclass(frozen=True, slots=True)
class Shown:
    """One line of the panel."""

    row: InclusionRow
    title: str
    href: str
    drawing: Markup
    spark: Markup


def inclusion(data: RoundData, *, last: int | None = None) -> Panel | None:
    """The panel over all steps of the round or the ``last`` ones; None without a curriculum."""
    curriculum = getattr(data.round, "curriculum", None)
    if curriculum is None:
        return None
    targets = {chunk["skill_id"]: float(chunk["rho"]) for chunk in curriculum.chunks}
    rows = inclusion_rows(data.series, curriculum.q, targets, last=last)
    shown = [_shown(data, row) for row in rows]
    table = Table(
        name="inclusion",
        columns=[Column("skill_id", _("Chunk"), "mono"), *columns()],
        rows=[
            {"skill_id": row.skill_id or "skill-free", **row.cells(), "_href": line.href}
            for row, line in zip(rows, shown, strict=True)
        ],
    )
    facts = {
        "rows": shown,
        "groups": rows[0].n,
        "assisted": rows[0].n - rows[0].shown,
        "last": last,
        "window": LAST,
        "steps": [count.step for count in rows[0].counts],
    }
    return Panel("inclusion", table, None, facts)


def _shown(data: RoundData, row: InclusionRow) -> Shown:
    free = row.skill_id == SKILL_FREE
    query = {"treatment": "skill_free"} if free else {"chunk": row.skill_id}
    return Shown(
        row=row,
        title=_("Skill-free groups against q")
        if free
        else data.titles.get(row.skill_id, row.skill_id),
        href=data.episodes(**query),
        drawing=inclusion_row(row.observed, row.target, row.band),
        spark=sparkline([c.rate for c in row.counts], bands=row.bands(), outside=row.outside()),
    )
