"""The first page: the question, the answer in four numbers, how the run went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from django.utils.translation import gettext as _

from intraskill_web.core import formats
from intraskill_web.core.labels import SPLITS, TRIGGERS, word
from intraskill_web.core.tables import Column, Table
from intraskill_web.experiments.checkpoints import (
    checkpoint_chart,
    checkpoint_rows,
    checkpoint_table,
)
from intraskill_web.experiments.survival import survival
from intraskill_web.reports.site.blocks import (
    Block,
    Chapter,
    ChartCard,
    Fact,
    Facts,
    Matrix,
    Note,
    Section,
    TableCard,
    Text,
)
from intraskill_web.reports.site.curves import SCRIPTS as PLOT_SCRIPTS
from intraskill_web.reports.site.curves import curves_plot
from intraskill_web.reports.site.inputs import Inputs
from intraskill_web.reports.site.words import CONDITIONS
from trainer.analysis.schema_outcomes import Arm, Test
from trainer.analysis.schema_values import Difference, Figure

COUNTS = ("generated_episodes", "all_wrong_groups", "eligible_cards", "candidates")


def overview(inputs: Inputs) -> Chapter:
    """What was asked, what came out, and where to read on."""
    found = inputs.analysis
    plot = curves_plot(inputs)
    return Chapter(
        key="index",
        title=inputs.title,
        lead=_(
            "A policy and its written skill, evolved together over %(rounds)s rounds: train with "
            "the skill shown at random, analyse what failed, let a randomised gate decide which "
            "texts stay."
        )
        % {"rounds": len(found.rounds)},
        sections=[
            Section("result", _("Result"), _result(found.tests)),
            Section("curve", _("Training"), [plot] if plot else []),
            Section("checkpoints", _("Checkpoints"), _checkpoints(inputs)),
            Section("rounds", _("Rounds"), [_rounds(inputs)] if found.rounds else []),
            Section("survival", _("Survival of chunks"), _survival(inputs)),
            Section("limits", _("What this does not show"), _limits(inputs)),
        ],
        scripts=PLOT_SCRIPTS if plot else (),
    )


def _result(tests: list[Test]) -> list[Block]:
    blocks: list[Block] = []
    for test in tests:
        arms = {arm.condition: arm for arm in test.arms if arm.condition}
        items = [_fact(arms[key], str(label)) for key, label in CONDITIONS.items() if key in arms]
        if items:
            blocks.append(Text([_("Success on the %(split)s split, by condition.")
                                % {"split": word(SPLITS, test.split)}]))  # fmt: skip
            sources = [arms[key].source for key in CONDITIONS if key in arms]
            blocks.append(Facts(items, "; ".join(sources)))
        if test.internalisation_gap is not None:
            blocks.append(_gap(test, test.internalisation_gap))
    return blocks


def _gap(test: Test, gap: Difference) -> Text:
    """With the interval that pages show, where the task outcomes that it needs are known."""
    newcombe = next((each.newcombe for each in test.contrasts if each.name == "final_skill"), None)
    said = {
        "gap": formats.effect(gap.difference),
        "interval": formats.interval(*(newcombe or gap.interval or (None, None))),
        "method": _("Newcombe") if newcombe else _("bootstrap"),
        "n": formats.count(gap.n),
    }
    text = _(
        "Internalisation gap, final with skill minus final bare: %(gap)s %(interval)s (95 %%, "
        "%(method)s) success over %(n)s tasks. Near zero, the weights know what the text says."
    )
    return Text([text % said])


def _fact(arm: Arm, label: str) -> Fact:
    success, reward = arm.figures["success"], arm.figures["reward"]
    value = formats.percent(None if success.value is None else float(success.value), 2)
    note = _("reward %(r)s, n %(n)s") % {
        "r": formats.rate(None if reward.value is None else float(reward.value)),
        "n": formats.count(success.n),
    }
    return Fact(label, value, note, success.source)


def _checkpoints(inputs: Inputs) -> list[Block]:
    rows = [
        replace(row, experiment="") for row in checkpoint_rows(inputs.experiment, inputs.scores)
    ]
    last = max((r.step for r in inputs.analysis.rounds), default=0)
    chart = checkpoint_chart(rows, last)
    if chart is None:
        return []
    note = _("Bare: no chunk in the prompt. Bands are 95 % Wilson intervals.")
    sources = sorted({score.path for score in inputs.scores})
    return [
        ChartCard(_("Success of each checkpoint on validation"), chart, checkpoint_table(rows),
                  source="; ".join(sources), note=note)
    ]  # fmt: skip


def _rounds(inputs: Inputs) -> TableCard:
    gates = {gate.round: gate for gate in inputs.analysis.gates}
    rows = []
    for item in inputs.analysis.rounds:
        gate = gates.get(item.round)
        because = [
            f"{name} {formats.count(int(count))}"
            for key, name in TRIGGERS.items()
            if (count := _value(item.funnel, f"triggered_{key}")) is not None
        ]
        counts = {key: item.funnel[key].value for key in COUNTS if key in item.funnel}
        measured: dict[str, object] = {}
        if gate is not None:
            measured = {
                "bare": _value(gate.bare, "reward"),
                "masked": _value(gate.masked, "reward"),
                "delta": gate.delta.value,
                "n": gate.delta.n,
            }
        rows.append(
            {
                "round": item.round,
                "step": item.step,
                "chunks": f"{_shown(item.input_chunks)} → {_shown(item.selected_chunks)}",
                **counts,
                "because": ", ".join(because) or None,
                **measured,
            }
        )
    columns = [
        Column("round", _("Round"), "count"),
        Column("step", _("Step"), "count"),
        Column("chunks", _("Chunks")),
        Column("generated_episodes", _("Episodes generated"), "count"),
        Column("all_wrong_groups", _("Groups that failed throughout"), "count"),
        Column("because", _("Analysed because")),
        Column("eligible_cards", _("Eligible cards"), "count"),
        Column("candidates", _("Candidates"), "count"),
        Column("bare", _("Bare reward"), "rate"),
        Column("masked", _("Masked reward"), "rate"),
        Column("delta", _("Masked − bare"), "effect"),
        Column("n", _("Tasks"), "count"),
    ]
    source = "; ".join(sorted({r.source for r in inputs.analysis.rounds}))
    return TableCard(_("The rounds"), Table("rounds", columns, rows), source=source,
                     csv="data/rounds.csv")  # fmt: skip


def _shown(value: int | None) -> str:
    return formats.UNKNOWN if value is None else str(value)


def _value(figures: Mapping[str, Figure], key: str) -> float | None:
    found = figures.get(key)
    return None if found is None else found.value


def _survival(inputs: Inputs) -> list[Block]:
    matrix = survival(inputs.skill_versions, inputs.gates)
    if not matrix.rows:
        return []
    return [Matrix(_("Coefficient of every chunk in every gate"), matrix,
                   "; ".join(sorted({g.source for g in inputs.analysis.gates})))]  # fmt: skip


def _limits(inputs: Inputs) -> list[Block]:
    notes: list[Block] = [
        Note(
            _(
                "One seed, one run. Intervals are over tasks, not over repeated training; a "
                "comparison of several seeds is another report."
            )
        )
    ]
    if any(gate.profile == "published" for gate in inputs.analysis.gates):
        notes.append(
            Note(
                _(
                    "The gate of this run keeps what is positive. Its coefficients carry sampling "
                    "error of about 0.03; a single one is weak evidence."
                )
            )
        )
    if inputs.analysis.missing:
        shown = ", ".join(inputs.analysis.missing[:12])
        rest = len(inputs.analysis.missing) - 12
        more = _(" and %(n)s more") % {"n": rest} if rest > 0 else ""
        notes.append(Note(_("Not in the run folder: %(names)s.") % {"names": shown + more}))
    return notes
