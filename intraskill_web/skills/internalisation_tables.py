"""The tables of the internalisation page."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from intraskill_web.core.tables import Column, Table
from intraskill_web.skills.internalisation import Checkpoint
from intraskill_web.skills.treatments import Training


def checkpoints_table(rows: Sequence[Checkpoint]) -> Table:
    """The checkpoints as data."""
    columns = [
        Column("step", _("Step"), "count"),
        Column("split", _("Split")),
        Column("assisted_by", _("Assisted by")),
        Column("bare", _("Skill-free success"), "rate"),
        Column("bare_n", _("n skill-free"), "count"),
        Column("assisted", _("Assisted success"), "rate"),
        Column("assisted_n", _("n assisted"), "count"),
        Column("gap", _("Gap"), "effect"),
        Column("low", _("From"), "effect"),
        Column("high", _("To"), "effect"),
        Column("pairs", _("Pairs"), "count"),
        Column("gained", _("Only with the skill"), "count"),
        Column("lost", _("Only without"), "count"),
    ]
    return Table(
        "internalisation",
        columns,
        [
            {
                "step": row.step,
                "split": row.split,
                "assisted_by": row.arm,
                "bare": row.bare.success,
                "bare_n": row.bare.n,
                "assisted": row.assisted.success,
                "assisted_n": row.assisted.n,
                "gap": row.gap.value,
                "low": row.gap.interval[0],
                "high": row.gap.interval[1],
                "pairs": row.gap.pairs or None,
                "gained": row.gap.paired.gain if row.gap.paired else None,
                "lost": row.gap.paired.loss if row.gap.paired else None,
            }
            for row in rows
        ],
    )


def training_table(rows: Sequence[Training]) -> Table:
    """The rounds of training as data."""
    columns = [
        Column("round", _("Round"), "count"),
        Column("free", _("Skill-free success"), "rate"),
        Column("free_groups", _("Skill-free groups"), "count"),
        Column("assisted", _("Assisted success"), "rate"),
        Column("assisted_groups", _("Assisted groups"), "count"),
        Column("gap", _("Gap"), "effect"),
        Column("low", _("From"), "effect"),
        Column("high", _("To"), "effect"),
    ]
    return Table(
        "training",
        columns,
        [
            {
                "round": row.round,
                "free": row.free,
                "free_groups": row.free_groups,
                "assisted": row.assisted,
                "assisted_groups": row.assisted_groups,
                "gap": row.gap,
                "low": row.interval[0],
                "high": row.interval[1],
            }
            for row in rows
        ],
    )
