"""Results: conditions, paired differences, transitions, comparisons on record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.utils.translation import gettext as _

from intraskill_web.charts.rows import ForestScale, forest_axis, forest_row
from intraskill_web.core import formats
from intraskill_web.core.labels import SPLITS, word
from intraskill_web.core.tables import Column, Kind, Table
from intraskill_web.reports.site.blocks import (
    Block,
    Chapter,
    ForestCard,
    Note,
    Section,
    TableCard,
)
from intraskill_web.reports.site.inputs import Inputs
from intraskill_web.reports.site.words import CONDITIONS, CONTRASTS, METRICS, TRANSITIONS
from trainer.analysis.schema import Arm, Contrast, Difference, Test

PRIMARY = ("r_success", "reward")
# figure → how it is shown; the order of the table
ARM_COLUMNS: tuple[tuple[str, Kind], ...] = (
    ("reward", "rate"), ("reward_sem", "rate"), ("success", "rate"), ("r_att", "rate"),
    ("r_loose", "rate"), ("r_option", "rate"), ("r_price", "rate"), ("r_type", "rate"),
    ("steps_mean", "rate"), ("model_steps", "count"), ("protocol_errors", "count"),
    ("protocol_error_rate", "rate"), ("policy_failures", "count"), ("invalid_actions", "count"),
    ("total_actions", "count"), ("completion_tokens", "count"), ("prompt_tokens", "count"),
    ("tokens_per_step", "number"), ("coverage", "rate"),
)  # fmt: skip


def results(inputs: Inputs) -> Chapter:
    """A section for each split, then what comparison files have on record."""
    found = inputs.analysis
    sections = [
        Section(
            f"split-{test.split}",
            _("Conditions on the %(split)s split") % {"split": word(SPLITS, test.split)},
            _test(test),
        )
        for test in found.tests
    ]
    if found.recorded:
        sections.append(
            Section(
                "recorded",
                _("Comparisons on record"),
                [_recorded(each) for each in found.recorded],
            )
        )
    if found.ranking:
        sections.append(Section("ranking", _("Ranking appendix"), _ranking(inputs)))
    return Chapter(
        key="results",
        title=_("Results"),
        lead=_("Each difference is taken task by task, with its interval, its test and the "
               "smallest difference that this number of tasks can find."),
        sections=sections,
    )  # fmt: skip


def _test(test: Test) -> list[Block]:
    blocks: list[Block] = [arms_table(test.arms, _("Conditions"), f"arms_{test.split}")]
    if not test.contrasts:
        return blocks
    blocks.append(_forest(test))
    blocks.append(_differences(test))
    moved = [each for each in test.contrasts if each.transitions]
    if moved:
        blocks.append(_transitions(test, moved))
    blocks.append(
        Note(_("A difference below the smallest detectable one is no effect shown, not no effect."))
    )
    return blocks


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


def _forest(test: Test) -> ForestCard:
    chosen = [
        (each, difference)
        for each in test.contrasts
        for difference in each.differences
        if difference.metric in PRIMARY
    ]
    ends = [e for _c, d in chosen for e in (*(d.interval or ()), d.difference)]
    scale = ForestScale.holding(ends)
    lines = []
    for each, d in chosen:
        label = _("%(name)s, %(metric)s: %(effect)s %(interval)s") % {
            "name": word(CONTRASTS, each.name),
            "metric": word(METRICS, d.metric),
            "effect": formats.effect(d.difference),
            "interval": interval_text(d.interval),
        }
        lines.append(
            {
                "title": word(CONTRASTS, each.name),
                "rank": "",
                "id": word(METRICS, d.metric),
                "drawing": forest_row(scale, d.difference, d.interval, "selected", label),
                "effect": formats.effect(d.difference, 4),
                "interval": interval_text(d.interval, 4),
                "status": "",
                "n": formats.count(d.n),
            }
        )
    return ForestCard(
        _("Paired differences, 95 % interval"), forest_axis(scale), lines,
        source=test.contrasts[0].source,
        note=_("Percentile bootstrap over tasks, 10,000 resamples."),
    )  # fmt: skip


def difference_columns() -> list[Column]:
    """What every table of differences shows."""
    return [
        Column("metric", _("Metric")),
        Column("a", _("Before"), "number"),
        Column("b", _("After"), "number"),
        Column("difference", _("Difference"), "number"),
        Column("interval", _("95 % interval")),
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


def _differences(test: Test) -> TableCard:
    columns = [Column("contrast", _("Contrast")), *difference_columns()]
    rows = [
        {"contrast": word(CONTRASTS, each.name), **difference_row(d)}
        for each in test.contrasts
        for d in each.differences
    ]
    name = f"differences_{test.split}"
    return TableCard(
        _("All differences"), Table(name, columns, rows), source=test.contrasts[0].source,
        note=_("Tests are adjusted by Holm over the declared metrics reward and success; the "
               "others are exploratory."), csv=f"data/{name}.csv",
    )  # fmt: skip


def _transitions(test: Test, moved: Sequence[Contrast]) -> TableCard:
    columns = [
        Column("contrast", _("Contrast")),
        *(Column(key, str(label), "count") for key, label in TRANSITIONS.items()),
        Column("n", _("Tasks"), "count"),
        Column("mcnemar", _("McNemar, exact"), "number"),
        Column("mid", _("McNemar, mid-p"), "number"),
        Column("newcombe", _("Newcombe 95 %")),
    ]
    rows = [
        {
            "contrast": word(CONTRASTS, each.name),
            **(each.transitions or {}),
            "n": each.n,
            "mcnemar": each.mcnemar_exact,
            "mid": each.mcnemar_mid_p,
            "newcombe": interval_text(each.newcombe, 4),
        }
        for each in moved
    ]
    name = f"transitions_{test.split}"
    return TableCard(_("How tasks moved"), Table(name, columns, rows), source=moved[0].source,
                     csv=f"data/{name}.csv")  # fmt: skip


def _recorded(each: Contrast) -> TableCard:
    rows = [difference_row(d) for d in each.differences]
    table = Table(f"recorded-{each.name}", present(difference_columns(), rows), rows)
    note = _("Quoted from its file; the task values behind it were not published.")
    return TableCard(word(CONTRASTS, each.name), table, source=each.source, note=note)


def _ranking(inputs: Inputs) -> list[Block]:
    found = inputs.analysis
    blocks: list[Block] = [arms_table(found.ranking, _("Bundles"), "ranking")]
    columns = [Column("contrast", _("Contrast"), "mono"), *difference_columns()]
    rows = [
        {"contrast": each.name, **difference_row(d)}
        for each in found.ranking_contrasts
        for d in each.differences
        if d.metric in PRIMARY
    ]
    if rows:
        blocks.append(
            TableCard(
                _("Differences of the bundles"),
                Table("ranking-differences", present(columns, rows), rows),
                source="; ".join(sorted({c.source for c in found.ranking_contrasts})),
            )
        )
    base = {k.removeprefix("base_gate/"): f for k, f in found.facts.items() if "/" in k}
    if base:
        blocks.append(
            TableCard(
                _("Coefficients of all draft chunks at the base model"),
                Table(
                    "base-gate",
                    [
                        Column("chunk", _("Chunk"), "mono"),
                        Column("value", _("Coefficient"), "effect"),
                    ],
                    [
                        {"chunk": k, "value": f.value}
                        for k, f in sorted(
                            base.items(), key=lambda item: -float(item[1].value or 0)
                        )
                    ],
                ),
                source=next(iter(base.values())).source,
            )
        )
    return blocks
