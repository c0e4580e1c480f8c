"""The comparison of several runs: arms over seeds, pairs of arms, pairs of runs."""

from __future__ import annotations

from django.utils.translation import gettext as _

from intraskill_web.charts.rows import ForestScale, forest_axis, forest_row
from intraskill_web.core import formats
from intraskill_web.core.labels import SPLITS, word
from intraskill_web.core.tables import Column, Table
from intraskill_web.reports.site.blocks import (
    Block,
    Chapter,
    ForestCard,
    Note,
    Section,
    TableCard,
    Text,
)
from intraskill_web.reports.site.words import CONDITIONS, METRICS, TRANSITIONS
from trainer.analysis.several_schema import Comparison

HEADLINES = ("final_free", "final_st")


def figure_word(key: str) -> str:
    """``test/final_free/success`` in words."""
    split, condition, metric = key.split("/")
    return _("%(split)s, %(condition)s, %(metric)s") % {
        "split": word(SPLITS, split),
        "condition": word(CONDITIONS, condition),
        "metric": word(METRICS, metric).lower(),
    }


def comparison(found: Comparison) -> Chapter:
    """One page."""
    return Chapter(
        key="index",
        title=_("Comparison of %(n)s runs") % {"n": len(found.runs)},
        lead=_(
            "Runs with equal settings but their seeds are one arm. Arms are compared over the "
            "seeds that both have, runs over the tasks that both played."
        ),
        sections=[
            Section("arms", _("Arms"), [_forest(found), _arms(found)]),
            Section("settings", _("What the arms differ in"), _settings(found)),
            Section("seeds", _("Arms over common seeds"), _seeds(found)),
            Section("runs", _("Runs"), [_runs(found)]),
            Section("pairs", _("Runs task by task"), _pairs(found)),
        ],
    )


def _forest(found: Comparison) -> ForestCard:
    rows = [r for r in found.arms if r.figure.split("/")[1] in HEADLINES]
    centre = sum(r.mean for r in rows) / len(rows) if rows else 0.0
    ends = [e - centre for r in rows for e in (r.mean, *(r.interval or ()))]
    scale = ForestScale.holding(ends)
    lines = []
    for row in rows:
        interval = None if row.interval is None else (
            row.interval[0] - centre, row.interval[1] - centre
        )  # fmt: skip
        label = _("Arm %(arm)s, %(figure)s: mean %(mean)s over %(n)s runs") % {
            "arm": row.arm,
            "figure": figure_word(row.figure),
            "mean": formats.rate(row.mean, 4),
            "n": row.n,
        }
        lines.append(
            {
                "rank": "",
                "title": _("Arm %(arm)s") % {"arm": row.arm},
                "id": figure_word(row.figure),
                "drawing": forest_row(scale, row.mean - centre, interval, "selected", label),
                "effect": formats.rate(row.mean, 4),
                "interval": "" if row.interval is None else
                f"[{row.interval[0]:.4f}, {row.interval[1]:.4f}]",
                "status": "",
                "n": formats.count(row.n),
            }
        )  # fmt: skip
    note = _("Zero of the scale is the mean of all rows, %(centre)s. Intervals are over runs.") % {
        "centre": formats.rate(centre, 4)
    }
    return ForestCard(_("Mean of each arm, interval of 95 %"), forest_axis(scale), lines, note=note,
                      source="data/comparison.json")  # fmt: skip


def _arms(found: Comparison) -> TableCard:
    columns = [
        Column("arm", _("Arm")),
        Column("figure", _("Figure")),
        Column("n", _("Runs"), "count"),
        Column("mean", _("Mean"), "number"),
        Column("sd", _("Standard deviation"), "number"),
        Column("interval", _("Interval, 95 %")),
        Column("least", _("Least"), "number"),
        Column("most", _("Most"), "number"),
        Column("runs", _("Names"), "mono"),
    ]
    rows = [
        {
            **row.model_dump(exclude={"interval", "runs", "figure"}),
            "figure": figure_word(row.figure),
            "interval": "" if row.interval is None else
            f"[{row.interval[0]:.6g}, {row.interval[1]:.6g}]",
            "runs": ", ".join(row.runs),
        }
        for row in found.arms
    ]  # fmt: skip
    return TableCard(_("Mean and spread"), Table("arms", columns, rows),
                     source="data/comparison.json", csv="data/arms.csv")  # fmt: skip


def _settings(found: Comparison) -> list[Block]:
    if not found.differing:
        return [Text([_("Nothing but their seeds: all runs are one arm.")])]
    arms = sorted(found.settings)
    columns = [Column("setting", _("Setting"), "mono"), *(Column(a, a) for a in arms)]
    rows = [{"setting": key, **values} for key, values in found.differing.items()]
    return [TableCard(_("Settings"), Table("differing", columns, rows))]


def _seeds(found: Comparison) -> list[Block]:
    if not found.seed_pairs:
        return [Note(_("No two arms have two seeds in common."))]
    columns = [
        Column("pair", _("Arms")),
        Column("figure", _("Figure")),
        Column("n", _("Seeds"), "count"),
        Column("difference", _("Difference"), "number"),
        Column("sd", _("Standard deviation"), "number"),
        Column("interval", _("Interval, 95 %")),
        Column("p", _("p"), "number"),
        Column("p_holm", _("p, Holm"), "number"),
    ]
    rows = [
        {
            "pair": f"{row.b} − {row.a}",
            "figure": figure_word(row.figure),
            "interval": f"[{row.interval[0]:.6g}, {row.interval[1]:.6g}]",
            **{k: getattr(row, k) for k in ("n", "difference", "sd", "p", "p_holm")},
        }
        for row in found.seed_pairs
    ]
    return [TableCard(_("Paired by seed, t test"), Table("seeds", columns, rows),
                      source="data/comparison.json", csv="data/seed_pairs.csv")]  # fmt: skip


def _runs(found: Comparison) -> TableCard:
    keys = sorted({key for run in found.runs for key in run.figures})
    columns = [
        Column("name", _("Run"), "mono"),
        Column("arm", _("Arm")),
        Column("seed", _("Seed"), "number"),
        Column("rounds", _("Rounds"), "count"),
        Column("final_chunks", _("Chunks"), "count"),
        *(Column(key, figure_word(key), "rate") for key in keys),
    ]
    rows = [
        {
            **run.model_dump(exclude={"figures"}),
            **{key: figure.value for key, figure in run.figures.items()},
        }
        for run in found.runs
    ]
    return TableCard(_("Every run"), Table("runs", columns, rows), source="data/comparison.json",
                     csv="data/runs.csv")  # fmt: skip


def _pairs(found: Comparison) -> list[Block]:
    if not found.run_pairs:
        return [Note(_("No two runs played the same tasks."))]
    columns = [
        Column("pair", _("Runs")),
        Column("where", _("Condition")),
        Column("metric", _("Metric")),
        Column("difference", _("Difference"), "number"),
        Column("interval", _("Interval, 95 %")),
        Column("p", _("p"), "number"),
        Column("p_holm", _("p, Holm"), "number"),
        Column("detectable", _("Smallest detectable"), "rate"),
        *(Column(key, str(label), "count") for key, label in TRANSITIONS.items()),
        Column("n", _("Tasks"), "count"),
    ]
    rows = []
    for pair in found.run_pairs:
        for d in pair.contrast.differences:
            low, high = d.interval or (0.0, 0.0)
            moved = pair.contrast.transitions or {}
            rows.append(
                {
                    "pair": pair.contrast.name,
                    "where": f"{word(SPLITS, pair.contrast.split)}, "
                    f"{word(CONDITIONS, pair.condition)}",
                    "metric": word(METRICS, d.metric),
                    "difference": d.difference,
                    "interval": f"[{low:.6g}, {high:.6g}]",
                    "p": d.p,
                    "p_holm": pair.p_holm.get(d.metric),
                    "detectable": d.detectable,
                    "n": d.n,
                    **(moved if d.metric == "r_success" else {}),
                }
            )
    note = _("p-values are adjusted by Holm over all pairs, conditions and both metrics.")
    return [TableCard(_("Paired by task"), Table("pairs", columns, rows), note=note,
                      source="data/comparison.json", csv="data/run_pairs.csv")]  # fmt: skip
