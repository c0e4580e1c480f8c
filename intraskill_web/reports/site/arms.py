"""Tables of arms and of differences between them, as several chapters show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.utils.translation import gettext as _

from intraskill_web.core import formats
from intraskill_web.core.labels import word
from intraskill_web.core.tables import Column, Kind, Table
from intraskill_web.reports.site.blocks import (
    TableCard,
)
from intraskill_web.reports.site.words import CONDITIONS, METRICS
from trainer.analysis.schema_outcomes import Arm
from trainer.analysis.schema_values import Difference

# figure → how it is shown; the order of the table
ARM_COLUMNS: tuple[tuple[str, Kind], ...] = (
    ("reward", "rate"), ("reward_sem", "rate"), ("success", "rate"), ("r_att", "rate"),
    ("r_loose", "rate"), ("r_option", "rate"), ("r_price", "rate"), ("r_type", "rate"),
    ("steps_mean", "rate"), ("model_steps", "count"), ("protocol_errors", "count"),
    ("protocol_error_rate", "rate"), ("policy_failures", "count"), ("invalid_actions", "count"),
    ("total_actions", "count"), ("completion_tokens", "count"), ("prompt_tokens", "count"),
    ("tokens_per_step", "number"), ("coverage", "rate"),
)  # fmt: skip


class Shown(Column):
    """A column of numbers whose kinds differ by row: the cells are finished texts."""

    @property
    def numeric(self) -> bool:
        return True

    def show(self, value: object) -> str:
        return formats.UNKNOWN if value is None else str(value)


def interval_text(pair: tuple[float, float] | None, places: int = 3) -> str:
    """An interval as people read it; empty where there is none."""
    low, high = pair or (None, None)
    return formats.interval(low, high, places)


def present(columns: Sequence[Column], rows: Sequence[Mapping[str, object]]) -> list[Column]:
    """The columns in which any row says something."""
    return [c for c in columns if any(row.get(c.key) not in (None, "") for row in rows)]


def arms_table(arms: Sequence[Arm], title: str, name: str) -> TableCard:
    """Every figure of every arm, arms as columns; the last column says what rates count in."""
    shown = [
        (key, kind)
        for key, kind in ARM_COLUMNS
        if any(key in a.figures and a.figures[key].value is not None for a in arms)
    ]
    columns = [Column("figure", _("Figure"))]
    columns += [Shown(f"a{i}", arm_label(arm)) for i, arm in enumerate(arms)]
    columns.append(Column("of", _("Counted in")))
    rows = [
        {
            "figure": _("Episodes scored"),
            **{f"a{i}": formats.count(arm.figures["reward"].n) for i, arm in enumerate(arms)},
            "of": "",
        }
    ]
    for key, kind in shown:
        column = Column(key, "", kind)
        found = [arm.figures.get(key) for arm in arms]
        rows.append(
            {
                "figure": word(METRICS, key),
                **{f"a{i}": column.show(f.value if f else None) for i, f in enumerate(found)},
                "of": next((f.of for f in found if f), ""),
            }
        )
    return TableCard(
        title,
        Table(name, columns, rows),
        source="; ".join(arm.source for arm in arms),
        csv=f"data/{name}.csv",
    )


def arm_label(arm: Arm) -> str:
    """The condition in words, with what it was."""
    if arm.condition in CONDITIONS:
        step = f", {arm.step}" if arm.step else ""
        skill = f" ({arm.bank})" if arm.bank else ""
        return f"{CONDITIONS[arm.condition]}{skill}{step}"
    return arm.name


def difference_columns() -> list[Column]:
    """What every table of differences shows."""
    return [
        Column("metric", _("Metric")),
        Column("a", _("Before"), "number"),
        Column("b", _("After"), "number"),
        Column("difference", _("Difference"), "number"),
        Column("interval", _("Bootstrap 95 %")),
        Column("p", _("p"), "number"),
        Column("p_holm", _("p, Holm"), "number"),
        Column("detectable", _("Smallest detectable"), "rate"),
        Column("n", _("n"), "count"),
    ]


def difference_row(each: Difference) -> dict[str, object]:
    """One difference as a row."""
    low, high = each.interval or (None, None)
    return {
        "metric": word(METRICS, each.metric),
        "a": each.a,
        "b": each.b,
        "difference": each.difference,
        "interval": "" if low is None else f"[{low:.6g}, {high:.6g}]",
        "p": each.p,
        "p_holm": each.p_holm,
        "detectable": each.detectable,
        "n": each.n,
    }
