"""Results: conditions, paired differences, transitions, comparisons on record."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from intraskill_web.charts.rows import ForestScale, forest_axis, forest_row
from intraskill_web.core import formats
from intraskill_web.core.labels import SPLITS, word
from intraskill_web.core.tables import Column, Table
from intraskill_web.reports.site.arms import (
    arms_table,
    difference_columns,
    difference_row,
    interval_text,
    present,
)
from intraskill_web.reports.site.blocks import (
    Block,
    Chapter,
    ForestCard,
    Note,
    Section,
    TableCard,
)
from intraskill_web.reports.site.inputs import Inputs
from intraskill_web.reports.site.words import CONTRASTS, METRICS, TRANSITIONS
from trainer.analysis.schema_outcomes import Contrast, Test

PRIMARY = ("r_success", "reward")


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
        _("Paired differences, interval of 95 %"), forest_axis(scale), lines,
        source=test.contrasts[0].source,
        note=_("Percentile bootstrap over tasks, 10,000 resamples."),
    )  # fmt: skip


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
