"""The gate panel of a round: masked minus bare by round, and what this round still waits for."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from intraskill_web.charts.rows import ForestScale, interval_mark
from intraskill_web.charts.svg import Markup, percent, tag
from intraskill_web.core.tables import Column, Table
from intraskill_web.episodes.links import episodes_url
from intraskill_web.experiments.models import Round
from intraskill_web.experiments.round_page import GateFacts
from intraskill_web.gates.models import GateRun
from intraskill_web.monitoring.panels.base import Panel

HEIGHT = 28


@dataclass(frozen=True, slots=True)
class GateLine:
    """One round's gate: means, difference and its drawing."""

    gate: GateRun
    drawing: Markup | None
    bare_href: str
    masked_href: str


def gate_panel(round_: Round, facts: GateFacts) -> Panel:
    """All gates up to this round on one scale."""
    complete = [g for g in facts.runs if g.status == "complete" and g.delta_mean is not None]
    ends = [e for g in complete for e in (g.delta_low, g.delta_high, g.delta_mean) if e is not None]
    scale = ForestScale.holding(ends)
    lines = [_line(gate, scale, round_.experiment.name) for gate in facts.runs]
    columns = [
        Column("round", _("Round"), "count"),
        Column("status", _("Status")),
        Column("observations", _("Pairs"), "count"),
        Column("bare_mean", _("Bare"), "rate"),
        Column("masked_mean", _("Masked"), "rate"),
        Column("delta_mean", _("Difference"), "effect"),
        Column("delta_low", _("From"), "effect"),
        Column("delta_high", _("To"), "effect"),
    ]
    keys = [column.key for column in columns[1:]]
    table = Table(
        "gates",
        columns,
        [{"round": g.round.number, **{k: getattr(g, k) for k in keys}} for g in facts.runs],
    )
    own = facts.of(round_)
    return Panel("gate", table, None, {"rows": lines, "own": own})


def difference_drawing(scale: ForestScale, gate: GateRun, *, height: int = HEIGHT) -> Markup | None:
    """The paired difference with its interval; None when the gate has none."""
    if gate.delta_mean is None:
        return None
    interval = None
    if gate.delta_low is not None and gate.delta_high is not None:
        interval = (gate.delta_low, gate.delta_high)
    zero = percent(scale.at(0.0))
    return tag(
        "svg",
        tag("line", class_="zero", x1=zero, x2=zero, y1=0, y2=height),
        interval_mark(scale, gate.delta_mean, interval, "difference", middle=height / 2),
        class_="fx",
        height=height,
        aria_hidden="true",
    )


def _line(gate: GateRun, scale: ForestScale, experiment: str) -> GateLine:
    query = {"experiment": experiment, "round": gate.round.number}
    return GateLine(
        gate=gate,
        drawing=difference_drawing(scale, gate),
        bare_href=episodes_url(**query, purpose="bare"),
        masked_href=episodes_url(**query, purpose="masked"),
    )
