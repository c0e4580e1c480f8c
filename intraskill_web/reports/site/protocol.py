"""Protocol and environment: what was played, scored and counted, and with which settings."""

from __future__ import annotations

from django.utils.translation import gettext as _

from intraskill_web.core.definitions import definitions
from intraskill_web.core.tables import Column, Table
from intraskill_web.reports.site.blocks import Block, Chapter, Section, TableCard, Text
from intraskill_web.reports.site.inputs import Inputs
from intraskill_web.reports.site.method import flat
from intraskill_web.reports.site.words import FUNNEL
from trainer.analysis.schema_values import Figure

FACTS = (
    "cold_start_trajectories", "cold_start_successes", "cold_start_failures", "cold_start_cards",
    "cold_start_draft_chunks", "training_episodes", "training_turns", "evaluation_cohorts",
    "train_tasks", "val_tasks", "test_tasks",
)  # fmt: skip
ENVIRONMENT = ("environment", "prompt", "runtime", "world", "model")


def protocol(inputs: Inputs) -> Chapter:
    """The shop, the reward, the splits, the counts, the settings."""
    return Chapter(
        key="protocol",
        title=_("Protocol and environment"),
        lead=_("What was played, how it was scored, what was counted."),
        sections=[
            Section("environment", _("Environment"), _environment(inputs)),
            Section("reward", _("Reward"), [_reward()]),
            Section("splits", _("Splits and their use"), _splits(inputs)),
            Section("counts", _("Counts"), _counts(inputs)),
            Section("settings", _("Settings"), _settings(inputs)),
            Section("definitions", _("Definitions"), [_definitions()]),
        ],
    )


def _environment(inputs: Inputs) -> list[Block]:
    settings = {k: v for k, v in inputs.analysis.settings.items() if k in ENVIRONMENT}
    text = Text(
        [
            _(
                "The policy shops in a simulated store: it searches, turns result pages, opens "
                "products, selects options and buys. It acts by one tool call a turn and sees "
                "structured pages, never the goal."
            )
        ]
    )
    return [text, _table(_("Identifiers on record"), settings, "environment")]


def _table(title: str, settings: dict[str, object], name: str) -> TableCard:
    columns = [Column("name", _("Name"), "mono"), Column("value", _("Value"))]
    rows = [{"name": key, "value": value} for key, value in flat(settings)]
    return TableCard(title, Table(name, columns, rows))


def _reward() -> Text:
    return Text(
        [
            _(
                "An episode ends with a purchase, at the turn limit or at the token limit. The "
                "strict reward compares the purchase with the goal in product type, attributes, "
                "options and price; success means that all of them are met. An episode that ends "
                "without a purchase scores zero; an episode that broke for technical reasons is "
                "not scored and counts in no mean."
            )
        ]
    )


def _splits(inputs: Inputs) -> list[Block]:
    text = _(
        "Training tasks are for training and the analyst, validation tasks for checkpoints and the "
        "gate, test tasks for the final conditions only. The gate reads validation outcomes in "
        "every round, so validation figures after the first gate are not untouched; test figures "
        "feed nothing."
    )
    return [Text([text])]


def _counts(inputs: Inputs) -> list[Block]:
    found = inputs.analysis
    names = list(dict.fromkeys(k for r in found.rounds for k in r.funnel))
    ordered = [k for k in FUNNEL if k in names] + [k for k in names if k not in FUNNEL]
    columns = [Column("what", _("Count"))]
    columns += [
        Column(f"r{r.round}", _("Round %(n)s") % {"n": r.round}, "count") for r in found.rounds
    ]
    columns += [Column("total", _("Total"), "count"), Column("of", _("Counted in"))]
    rows = []
    for key in ordered:
        figures = {r.round: r.funnel[key] for r in found.rounds if key in r.funnel}
        values = [f.value for f in figures.values() if f.value is not None]
        additive = key != "ledger_rows" and len(values) == len(found.rounds)
        rows.append(
            {
                "what": str(FUNNEL.get(key, key)),
                **{f"r{number}": figure.value for number, figure in figures.items()},
                "total": sum(values) if additive else None,
                "of": next(iter(figures.values())).of,
            }
        )
    blocks: list[Block] = []
    if rows:
        sources = sorted({f.source for r in found.rounds for f in r.funnel.values()})
        blocks.append(
            TableCard(_("From episode to candidate"), Table("funnel", columns, rows),
                      source="; ".join(sources), csv="data/funnel.csv")
        )  # fmt: skip
    facts = {k: f for k, f in found.facts.items() if k in FACTS or k.startswith("failed_attempts")}
    if facts:
        blocks.append(_facts(facts))
    return blocks


def _facts(facts: dict[str, Figure]) -> TableCard:
    columns = [
        Column("name", _("Name"), "mono"),
        Column("value", _("Value"), "count"),
        Column("n", _("n"), "count"),
        Column("of", _("Counted in")),
        Column("source", _("Source"), "mono"),
    ]
    rows = [{"name": key, **figure.model_dump()} for key, figure in facts.items()]
    return TableCard(_("Further counts on record"), Table("facts", columns, rows),
                     csv="data/facts.csv")  # fmt: skip


def _settings(inputs: Inputs) -> list[Block]:
    rest = {k: v for k, v in inputs.analysis.settings.items() if k not in ENVIRONMENT}
    return [_table(_("What the run was started with"), rest, "settings")] if rest else []


def _definitions() -> TableCard:
    columns = [
        Column("term", _("Term")),
        Column("meaning", _("Meaning")),
        Column("denominator", _("Denominator")),
    ]
    rows = [
        {"term": each.title, "meaning": each.text, "denominator": each.denominator}
        for each in definitions().values()
    ]
    return TableCard(_("Terms"), Table("definitions", columns, rows))
