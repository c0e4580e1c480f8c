"""The deeper part of the gate page: evidence by row, components, what-if, planner.

Built only for a gate whose health allows to show numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from intraskill_web.core.tables import Column, Table
from intraskill_web.gates import whatif
from intraskill_web.gates.components import Component, components, components_table
from intraskill_web.gates.evidence import Evidence
from intraskill_web.gates.forest import families
from intraskill_web.gates.models import KEPT, Contribution, GateRun
from intraskill_web.gates.planning import Plan, plan
from intraskill_web.gates.tasks import tasks_url


@dataclass(frozen=True, slots=True)
class SureRow:
    """How sure one effect is; the counts open the tasks behind them."""

    item: Contribution
    p_positive: float | None
    frequency: float | None
    shrunk: float | None
    present_href: str
    absent_href: str


@dataclass(frozen=True, slots=True)
class Detail:
    """What the templates below the forest need."""

    known: bool
    intervals: bool  # whether any effect has an interval
    sure: list[SureRow]
    components: list[Component]
    means: list[tuple[str, float, float, float]]
    question: whatif.Question
    answers: list[whatif.Answer]
    problem: str
    plan: Plan | None
    table: Table
    parts: Table

    @property
    def moved(self) -> int:
        """How many rows the what-if moves in or out."""
        return sum(a.moved for a in self.answers)

    @property
    def size(self) -> int:
        """How many chunks the what-if keeps."""
        return sum(a.status in KEPT for a in self.answers)

    def data(self) -> dict[str, Any]:
        """For the JSON twin."""
        return {
            "evidence": self.table.data(),
            "component_coefficients": self.parts.data(),
            "components": [
                {"name": name, "bare": bare, "masked": masked, "difference": difference}
                for name, bare, masked, difference in self.means
            ],
            "what_if": {
                "profile": self.question.profile,
                "budget": self.question.budget,
                "threshold": self.question.threshold,
                "problem": self.problem,
                "selected": [
                    a.item.intervention_id for a in self.answers if a.status in KEPT
                ],
                "moved": [a.item.intervention_id for a in self.answers if a.moved],
            },
            "plan": None if self.plan is None else {
                "slots": self.plan.slots, "tasks": self.plan.tasks,
                "se_now": self.plan.se_now, "se": self.plan.se, "ratio": self.plan.ratio,
            },
        }  # fmt: skip


def build(
    query: Mapping[str, str],
    gate: GateRun,
    rows: Sequence[Contribution],
    evidence: Evidence | None,
) -> Detail:
    """Everything below the forest."""
    ordered = [row for family in families(rows) for row in family]  # as in the forest
    question = whatif.ask(query, gate, evidence)
    answers, problem = whatif.answer(question, rows, evidence)
    sure = [_sure(gate, row, evidence) for row in ordered]
    return Detail(
        known=evidence is not None,
        intervals=any(row.low is not None for row in rows),
        sure=sure,
        components=components(ordered, evidence) if evidence else [],
        means=_means(gate, evidence),
        question=question,
        answers=answers,
        problem=problem,
        plan=plan(query, gate, rows),
        table=_table(sure),
        parts=components_table(ordered, evidence),
    )


def _sure(gate: GateRun, row: Contribution, evidence: Evidence | None) -> SureRow:
    found = evidence.columns.get(row.intervention_id) if evidence else None
    where = gate.round.experiment.name, gate.round.number, gate.profile, row.intervention_id
    return SureRow(
        item=row,
        p_positive=found.p_positive if found else None,
        frequency=found.frequency if found else None,
        shrunk=found.shrunk if found else None,
        present_href=tasks_url(*where, shown=True) if found else "",
        absent_href=tasks_url(*where, shown=False) if found else "",
    )


def _means(gate: GateRun, evidence: Evidence | None) -> list[tuple[str, float, float, float]]:
    """Bare and masked mean of every component, and their difference."""
    if evidence is None:
        stored: Mapping[str, Sequence[float | None]] = gate.summary.get("components") or {}
        pairs = {name: pair for name, pair in stored.items() if None not in pair}
    else:
        used = [r for r in evidence.gate.rows if r.get("bare_reward_detail")]
        names = [n for n in evidence.gate.outcomes if n != "reward"] if used else []
        pairs = {
            name: [
                sum(r[key][name] for r in used) / len(used)
                for key in ("bare_reward_detail", "reward_detail")
            ]
            for name in names
        }
    return [(n, float(b), float(m), float(m) - float(b)) for n, (b, m) in sorted(pairs.items())]  # type: ignore[arg-type]


def _table(rows: Sequence[SureRow]) -> Table:
    columns = [
        Column("intervention_id", _("Intervention"), "mono"),
        Column("p_positive", _("P(β > 0)"), "rate"),
        Column("frequency", _("Selection frequency"), "rate"),
        Column("shrunk", _("Shrunk"), "effect"),
    ]
    return Table(
        "evidence",
        columns,
        [
            {
                "intervention_id": row.item.intervention_id,
                "p_positive": row.p_positive,
                "frequency": row.frequency,
                "shrunk": row.shrunk,
            }
            for row in rows
        ],
    )
