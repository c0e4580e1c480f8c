"""Skill evolution: versions with their texts, gates with their forests, every proposal."""

from __future__ import annotations

from django.utils.translation import gettext as _

from intraskill_web.charts.rows import ForestScale, forest_axis, forest_row
from intraskill_web.core import formats
from intraskill_web.core.labels import chunk_status
from intraskill_web.core.tables import Column, Table
from intraskill_web.experiments.survival import survival
from intraskill_web.reports.site.blocks import (
    Banks,
    Block,
    Chapter,
    Chunks,
    ForestCard,
    Matrix,
    Section,
    TableCard,
)
from intraskill_web.reports.site.inputs import Inputs
from trainer.analysis.schema_rounds import Coefficient, Gate


def evolution(inputs: Inputs) -> Chapter:
    """How the bank became what it is."""
    found = inputs.analysis
    matrix = survival(inputs.skill_versions, inputs.gates)
    sections = [
        Section("versions", _("Versions"), [Banks(found.banks)] if found.banks else []),
        Section(
            "survival",
            _("Survival"),
            [Matrix(_("Coefficient of every chunk in every gate"), matrix,
                    "; ".join(g.source for g in found.gates))] if matrix.rows else [],
        ),
    ]  # fmt: skip
    for gate in found.gates:
        sections.append(
            Section(f"gate-{gate.round}", _("Gate of round %(n)s") % {"n": gate.round},
                    _gate(inputs, gate))
        )  # fmt: skip
    sections.append(Section("proposals", _("Proposals"), _proposals(inputs)))
    return Chapter(
        key="skills",
        title=_("Skill evolution"),
        lead=_("Every version of the skill with its texts, what each text added, and what became "
               "of every proposal."),
        sections=sections,
    )  # fmt: skip


def _gate(inputs: Inputs, gate: Gate) -> list[Block]:
    rows = [c for c in inputs.analysis.coefficients if c.round == gate.round]
    blocks: list[Block] = [_means(gate)] if gate.bare else []
    if rows:
        blocks.append(_forest(gate, rows))
        blocks.append(_coefficients(gate, rows))
    return blocks


def _means(gate: Gate) -> TableCard:
    columns = [
        Column("part", _("Outcome"), "mono"),
        Column("bare", _("Bare"), "number"),
        Column("bare_n", _("n bare"), "count"),
        Column("masked", _("Masked"), "number"),
        Column("masked_n", _("n masked"), "count"),
        Column("difference", _("Difference"), "effect"),
    ]
    rows = []
    for part in sorted(gate.bare.keys() & gate.masked.keys(), key=lambda k: (k != "reward", k)):
        a, b = gate.bare[part], gate.masked[part]
        known = a.value is not None and b.value is not None
        rows.append(
            {
                "part": part, "bare": a.value, "bare_n": a.n, "masked": b.value, "masked_n": b.n,
                "difference": float(b.value or 0) - float(a.value or 0) if known else None,
            }
        )  # fmt: skip
    low, high = gate.delta_interval or (None, None)
    note = _("Masked minus bare reward %(d)s %(i)s over %(n)s tasks.") % {
        "d": formats.effect(None if gate.delta.value is None else float(gate.delta.value), 4),
        "i": formats.interval(low, high, 4),
        "n": formats.count(gate.delta.n),
    }
    return TableCard(
        _("Outcomes, bare and masked"), Table(f"gate{gate.round}-means", columns, rows),
        source=gate.source, note=note,
    )  # fmt: skip


def _forest(gate: Gate, rows: list[Coefficient]) -> ForestCard:
    ends = [e for r in rows for e in (r.low, r.high, r.coefficient) if e is not None]
    scale = ForestScale.holding(ends)
    families: dict[str, list[Coefficient]] = {}
    for row in sorted(rows, key=lambda r: -r.coefficient):
        families.setdefault(row.logical_chunk_id, []).append(row)
    lines = []
    for family in families.values():
        for row in family:
            interval = None if row.low is None or row.high is None else (row.low, row.high)
            label = _("%(effect)s, 95 %% interval %(interval)s, %(status)s") % {
                "effect": formats.effect(row.coefficient),
                "interval": formats.interval(row.low, row.high) or _("unknown"),
                "status": chunk_status(row.status),
            }
            lines.append(
                {
                    "title": row.title,
                    "rank": row.rank,
                    "id": row.intervention_id,
                    "tag": (row.operation or row.kind).lower(),
                    "drawing": forest_row(scale, row.coefficient, interval, row.status, label),
                    "effect": formats.effect(row.coefficient, 4),
                    "interval": formats.interval(row.low, row.high),
                    "status": row.status,
                    "n": f"{_count(row.with_n)} / {_count(row.without_n)}",
                    "family": len(family) > 1,
                }
            )
    return ForestCard(
        _("Contribution of each text to the reward"), forest_axis(scale), lines,
        source=rows[0].source, statuses=sorted({r.status for r in rows}),
        note=_("n: masked episodes with and without the text."),
    )  # fmt: skip


def _count(value: int | None) -> str:
    return formats.UNKNOWN if value is None else formats.count(value)


def _coefficients(gate: Gate, rows: list[Coefficient]) -> TableCard:
    parts = sorted({name for row in rows for name in row.components if name != "r_strict"})
    columns = [
        Column("intervention_id", _("Intervention"), "mono"),
        Column("rank", _("Rank"), "count"),
        Column("coefficient", _("Coefficient"), "number"),
        Column("se", _("SE"), "rate"),
        Column("status", _("Status")),
        *(Column(part, part, "effect") for part in parts),
    ]
    table = [
        {
            "intervention_id": row.intervention_id, "rank": row.rank,
            "coefficient": row.coefficient, "se": row.se, "status": chunk_status(row.status),
            **row.components,
        }
        for row in rows
    ]  # fmt: skip
    return TableCard(
        _("The numbers"), Table(f"gate{gate.round}-coefficients", columns, table),
        source=rows[0].source, csv="data/coefficients.csv",
    )  # fmt: skip


def _proposals(inputs: Inputs) -> list[Block]:
    items = [
        {
            "title": each.title,
            "id": each.candidate_id,
            "tags": [_("round %(n)s") % {"n": each.round}, each.operation,
                     *([each.target_chunk_id] if each.target_chunk_id else [])],
            "status": each.status,
            "effect": "" if each.effect is None else formats.effect(each.effect, 4),
            "text": each.content,
            "note": _("from %(n)s failures") % {"n": each.cards} if each.cards else "",
        }
        for each in inputs.analysis.candidates
    ]  # fmt: skip
    sources = sorted({each.source for each in inputs.analysis.candidates})
    return [Chunks(_("Every proposal and its verdict"), items, "; ".join(sources))] if items else []
