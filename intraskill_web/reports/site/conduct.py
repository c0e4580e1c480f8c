"""Behaviour: what the policy does differently, by cohort, by pair, and in three chosen tasks."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from intraskill_web.core import formats
from intraskill_web.core.labels import PHASES
from intraskill_web.core.tables import Column, Table
from intraskill_web.reports.site.arms import difference_columns, difference_row
from intraskill_web.reports.site.blocks import (
    Block,
    Chapter,
    Note,
    Plot,
    Section,
    TableCard,
    Text,
)
from intraskill_web.reports.site.inputs import Inputs
from intraskill_web.reports.site.words import ACTIONS, CASES, METRICS, OUTCOMES
from trainer.analysis.schema import Analysis
from trainer.analysis.schema_outcomes import BehaviourPair, Case, CaseSide

EXPLORED = ("model_steps", "tokens_per_turn", "generated_tokens", "searches", "unique_products",
            "product_revisits", "backtracks", "pagination", "option_changes", "invalid_actions",
            "protocol_errors", "first_product_rank")  # fmt: skip
SCRIPTS = ("assets/plotly.min.js", "data/behaviour.js", "assets/behaviour.js")
STATISTICS = ("mean", "median", "p90")


def conduct(inputs: Inputs) -> Chapter:
    """The behaviour chapter."""
    found = inputs.analysis
    plot = _explorer(found)
    return Chapter(
        key="behaviour",
        title=_("Behaviour"),
        lead=_("How the policy shops: steps, tokens, searches, detours and errors."),
        sections=[
            Section("explorer", _("Explorer"), [plot] if plot else []),
            Section("cohorts", _("Cohorts"), _cohorts(found)),
            Section("pairs", _("The same tasks, before and after"),
                    [_pair(each) for each in found.pairs]),
            Section("phases", _("Where turns and tokens go"), _phases(found)),
            Section("cases", _("Three tasks, chosen by rule"), _cases(found)),
            Section("reading", _("How to read this"), _reading(found)),
        ],
        scripts=SCRIPTS if plot else (),
    )  # fmt: skip


def _explorer(found: Analysis) -> Plot | None:
    if not found.cohorts:
        return None
    present = [o for o in OUTCOMES if any(c.outcome == o for c in found.cohorts)]
    splits = list(dict.fromkeys(c.split for c in found.cohorts))
    return Plot(
        identity="behaviour",
        title=_("Any metric by cohort"),
        selects=[
            ("split", _("Episodes"), [(s, _split_word(s)) for s in splits]),
            ("outcome", _("Outcome"), [(o, str(OUTCOMES[o])) for o in present]),
            ("metric", _("Metric"), [(m, str(METRICS[m])) for m in EXPLORED]),
            ("statistic", _("Statistic"),
             [("mean", _("mean")), ("median", _("median")), ("p90", _("90th percentile"))]),
        ],
        words={"n": _("episodes"), "empty": _("No episode of this kind.")},
        source=found.cohorts[0].source,
        note=_("Each bar is one cohort; hover for n."),
    )  # fmt: skip


def _split_word(split: str) -> str:
    return {"val": _("validation"), "test": _("test"), "train": _("training")}.get(split, split)


def behaviour_data(found: Analysis) -> list[dict[str, Any]]:
    """What the explorer draws."""
    return [
        {
            "name": c.name,
            "split": c.split,
            "outcome": c.outcome,
            "n": c.n,
            "metrics": {
                m: {s: round(float(getattr(c.metrics[m], s) or 0), 6) for s in STATISTICS}
                | {"n": c.metrics[m].n}
                for m in EXPLORED
                if m in c.metrics
            },
        }
        for c in found.cohorts
    ]


def _cohorts(found: Analysis) -> list[Block]:
    if not found.cohorts:
        return []
    shown = ("model_steps", "tokens_per_turn", "searches", "unique_products", "invalid_actions",
             "protocol_errors")  # fmt: skip
    columns = [
        Column("cohort", _("Cohort"), "mono"),
        Column("outcome", _("Outcome")),
        Column("n", _("Episodes"), "count"),
        Column("tasks", _("Tasks"), "count"),
        Column("success", _("Success"), "rate"),
        *(Column(m, str(METRICS[m]), "rate") for m in shown),
        Column("p90", _("Steps, 90th percentile"), "rate"),
    ]
    rows = [
        {
            "cohort": c.name, "outcome": str(OUTCOMES[c.outcome]), "n": c.n, "tasks": c.tasks,
            "success": c.success_rate,
            **{m: c.metrics[m].mean for m in shown if m in c.metrics},
            "p90": c.metrics["model_steps"].p90,
        }
        for c in found.cohorts
    ]  # fmt: skip
    sources = "; ".join(dict.fromkeys(c.source for c in found.cohorts))
    note = _("Means over episodes; tokens are %(basis)s.") % {"basis": found.cohorts[0].token_basis}
    return [TableCard(_("Means by cohort and outcome"), Table("cohorts", columns, rows),
                      source=sources, note=note, csv="data/cohorts.csv")]  # fmt: skip


def _pair(each: BehaviourPair) -> TableCard:
    title = _("%(name)s, all tasks") if each.subset == "all" else _("%(name)s, both successful")
    columns = [c for c in difference_columns() if c.key not in ("p", "p_holm", "detectable")]
    return TableCard(
        title % {"name": each.name},
        Table(f"pair-{each.subset}", columns, [difference_row(d) for d in each.metrics]),
        source=each.metrics[0].source if each.metrics else "",
        note=_("Paired bootstrap over tasks, 5,000 resamples; not adjusted for their number."),
    )


def _phases(found: Analysis) -> list[Block]:
    chosen = [c for c in found.cohorts if c.outcome == "all"]
    if not chosen:
        return []
    columns = [Column("cohort", _("Cohort"), "mono")]
    columns += [Column(p, str(label), "rate") for p, label in PHASES.items()]
    rows = [
        {"cohort": c.name, **{p: c.phases[p]["turns_per_episode"] for p in PHASES}} for c in chosen
    ]
    return [
        TableCard(_("Turns an episode by page"), Table("phases", columns, rows),
                  source="; ".join(dict.fromkeys(c.source for c in chosen)),
                  csv="data/phases.csv")
    ]  # fmt: skip


def _cases(found: Analysis) -> list[Block]:
    return [_case(each) for each in found.cases]


def _case(case: Case) -> TableCard:
    columns = [
        Column("cohort", _("Cohort"), "mono"),
        Column("outcome", _("Outcome")),
        Column("turns", _("Turns"), "count"),
        Column("tokens", _("Tokens"), "count"),
        Column("path", _("Path")),
    ]
    title = _("%(rule)s: task %(id)s") % {
        "rule": str(CASES.get(case.rule, case.rule)),
        "id": case.task_id,
    }
    return TableCard(title, Table(f"case-{case.task_id}", columns, [_side(case.a), _side(case.b)]),
                     source=case.source)  # fmt: skip


def _side(side: CaseSide) -> dict[str, object]:
    outcome = "technical" if side.success is None else "success" if side.success else "failure"
    return {
        "cohort": side.cohort,
        "outcome": str(OUTCOMES[outcome]),
        "turns": side.turns,
        "tokens": side.tokens,
        "path": path_text(side.actions),
    }


def path_text(actions: list[str]) -> str:
    """The path in words, repeats counted."""
    parts: list[tuple[str, int]] = []
    for name in actions:
        if parts and parts[-1][0] == name:
            parts[-1] = (name, parts[-1][1] + 1)
        else:
            parts.append((name, 1))
    shown = [
        f"{ACTIONS.get(name, name)}" + (f" ×{formats.count(n)}" if n > 1 else "")
        for name, n in parts
    ]
    return " → ".join(shown)


def _reading(found: Analysis) -> list[Block]:
    text = [
        _(
            "Curves by outcome mix two things: how the policy acts, and which tasks it succeeds "
            "in. Only pairs on the same tasks tell the first alone."
        ),
        _(
            "A protocol repair is a turn but no action. An episode without a token count for every "
            "turn has no tokens a turn, rather than a smaller one."
        ),
    ]
    blocks: list[Block] = [Text(text)]
    if not found.cohorts:
        blocks.append(
            Note(
                _(
                    "The run folder holds no episode traces, so cohorts and pairs cannot be "
                    "computed; cases are quoted from its files."
                )
            )
        )
    return blocks
