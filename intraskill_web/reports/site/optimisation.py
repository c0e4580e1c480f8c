"""Optimisation: updates, first and second of a step apart, and the curves of both."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from intraskill_web.charts.panel import Divider, Frame, Line, line_panel
from intraskill_web.charts.scale import whole_ticks, widen
from intraskill_web.core.tables import Column, Table
from intraskill_web.reports.site.blocks import (
    Block,
    Chapter,
    ChartCard,
    Section,
    TableCard,
    Text,
)
from intraskill_web.reports.site.inputs import Inputs
from intraskill_web.reports.site.words import METRICS, PARTS
from trainer.analysis.schema import Analysis

SHOWN = ("train/entropy_loss", "train/grad_norm", "train/ppo_kl", "train/pg_clipfrac",
         "train/train_rollout_logprob_abs_diff", "train/loss")  # fmt: skip


def optimisation(inputs: Inputs) -> Chapter:
    """The optimiser's chapter."""
    found = inputs.analysis
    charts = [chart for metric in SHOWN if (chart := _chart(found, metric)) is not None]
    return Chapter(
        key="optimisation",
        title=_("Optimisation"),
        lead=_("What the optimiser did, one point an update."),
        sections=[
            Section("reading", _("Two updates a step"), [_reading()] if charts else []),
            Section("curves", _("Curves"), charts),
            Section("rounds", _("By round"), _summaries(found)),
            Section("zeros", _("Updates without a gradient"), _zeros(found)),
        ],
    )


def _reading() -> Text:
    return Text(
        [
            _(
                "The first update of a step uses the policy that played the episodes: its KL and "
                "clip fraction are exactly zero. The second is one update off. A mean over both "
                "would halve every off-policy figure, so they are drawn apart."
            )
        ]
    )


def _points(found: Analysis, metric: str) -> dict[str, list[tuple[float, float]]]:
    """(update, value) by place in the step; empty when the metric was not recorded."""
    if metric not in found.updates.columns:
        return {}
    at = found.updates.columns.index(metric)
    points: dict[str, list[tuple[float, float]]] = {}
    for row in found.updates.rows:
        if (value := row[at]) is not None:
            points.setdefault(str(row[3]), []).append((float(row[0] or 0), float(value)))
    return points


def _chart(found: Analysis, metric: str) -> ChartCard | None:
    points = _points(found, metric)
    values = [y for part in points.values() for _x, y in part]
    if len(values) < 2:
        return None
    last = max(x for part in points.values() for x, _y in part)
    lines = [
        Line(points[part], style, _end(part))
        for part, style in (("1", "l1"), ("2", "l2"))
        if part in points
    ]
    lines += [Line(points[part], "l3", part) for part in sorted(points) if part not in ("1", "2")]
    borders = _borders(found)
    frame = Frame(
        x_range=(0.0, last),
        y_range=widen(values),
        x_ticks=whole_ticks(0.0, last),
        title=_("%(metric)s by optimiser update.") % {"metric": METRICS.get(metric, metric)},
        dividers=[Divider(x, "", _("round %(n)s") % {"n": n}) for n, x in borders],
    )
    columns = [
        Column("update", _("Update"), "count"),
        Column("step", _("Step"), "count"),
        Column("part", _("Place in the step"), "count"),
        Column("value", str(METRICS.get(metric, metric)), "number"),
    ]
    at = found.updates.columns.index(metric)
    rows = [
        {"update": r[0], "step": r[1], "part": r[3], "value": r[at]} for r in found.updates.rows
    ]
    return ChartCard(
        str(METRICS.get(metric, metric)), line_panel(frame, lines),
        Table(f"update-{SHOWN.index(metric)}", columns, rows), source=found.updates.source,
        key=_key(points) if len(points) > 1 else (),
    )  # fmt: skip


def _end(part: str) -> str:
    return {"1": _("first"), "2": _("second")}.get(part, part)


def _key(points: Sequence[str] | dict[str, list[tuple[float, float]]]) -> list[tuple[str, str]]:
    return [(style, str(PARTS[part])) for part, style in (("1", "l1"), ("2", "l2"))
            if part in points]  # fmt: skip


def _borders(found: Analysis) -> list[tuple[int, float]]:
    """The first update of every round but the first."""
    first: dict[int, float] = {}
    for row in found.updates.rows:
        first.setdefault(int(row[2] or 0), float(row[0] or 0))
    return [(number, x - 0.5) for number, x in sorted(first.items())][1:]


def _summaries(found: Analysis) -> list[Block]:
    rows = [
        {
            "round": each.round,
            "part": str(PARTS.get(each.part, each.part)),
            "metric": str(METRICS.get(each.metric, each.metric)),
            "n": each.figures.n,
            "mean": each.figures.mean,
            "median": each.figures.median,
            "least": each.figures.least,
            "most": each.figures.most,
            "zeros": each.zeros,
        }
        for each in found.update_summaries
        if each.metric in SHOWN
    ]
    if not rows:
        return []
    columns = [
        Column("round", _("Round"), "count"),
        Column("part", _("Updates")),
        Column("metric", _("Metric")),
        Column("n", _("n"), "count"),
        Column("mean", _("Mean"), "number"),
        Column("median", _("Median"), "number"),
        Column("least", _("Least"), "number"),
        Column("most", _("Most"), "number"),
        Column("zeros", _("Exact zeros"), "count"),
    ]
    return [TableCard(_("Statistics by round"), Table("optimiser", columns, rows),
                      source=found.updates.source, csv="data/optimiser.csv")]  # fmt: skip


def _zeros(found: Analysis) -> list[Block]:
    if "train/grad_norm" not in found.updates.columns:
        return []
    at = found.updates.columns.index("train/grad_norm")
    zeros = [str(row[0]) for row in found.updates.rows if row[at] == 0]
    text = _("Gradient norm exactly zero at %(n)s of %(all)s updates: %(list)s.") % {
        "n": len(zeros),
        "all": len(found.updates.rows),
        "list": ", ".join(zeros) or _("none"),
    }
    return [Text([text])]
