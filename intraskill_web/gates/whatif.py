"""What if: the same coefficients selected by another budget, threshold or rule. Writes nothing.

The threshold is the least effect on reward: under the published rule a version must exceed it,
under the standard one it is the margin of retirement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from django.utils.translation import gettext as _
from pydantic import ValidationError

from intraskill_web.core.parameters import ParameterError, choice, number, whole
from intraskill_web.gates.evidence import Evidence
from intraskill_web.gates.models import KEPT, Contribution, GateRun
from trainer.config import GateProfile
from trainer.errors import InputError
from trainer.gate.refit import refit
from trainer.gate.selection import select
from trainer.gate.slots import Intervention, Layout, Slot
from trainer.gate.standard.settings import StandardSettings
from trainer.skills.types import Chunk

DEFAULT_BUDGET = 10


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked; ``error`` says what is wrong with it."""

    profile: GateProfile
    budget: int
    threshold: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """One row of the answer."""

    item: Contribution
    status: str
    rank: int | None

    @property
    def moved(self) -> bool:
        """Whether the row would go in or out."""
        return (self.status in KEPT) != (self.item.status in KEPT)


def ask(query: Mapping[str, str], gate: GateRun, evidence: Evidence | None) -> Question:
    """The question in a query string; what it leaves out is as recorded. Raises ParameterError
    for a rule that there is not."""
    recorded = "standard" if gate.profile == "standard" else "published"
    rule = choice(query, "as", get_args(GateProfile), recorded)
    profile: GateProfile = "standard" if rule == "standard" else "published"
    budgeted = gate.summary.get("active_skill_budget") or DEFAULT_BUDGET
    margin = StandardSettings().retire_margin if profile == "standard" else 0.0
    try:
        budget, threshold = whole(query, "budget", budgeted), number(query, "threshold", margin)
    except ParameterError:
        budget, threshold = -1, math.nan
    if not (1 <= budget <= 1000 and -1.0 <= threshold <= 1.0):
        error = _("Budget is a whole number from 1, threshold a reward between −1 and 1.")
        return Question(profile, max(1, min(budget, 1000)), 0.0, error)
    if profile == "standard" and evidence is None:
        error = _("The standard rule needs the gate's observations, which are not here.")
        return Question(profile, budget, threshold, error)
    return Question(profile, budget, threshold)


def answer(
    question: Question, rows: Sequence[Contribution], evidence: Evidence | None
) -> tuple[list[Answer], str]:
    """Every row under the question, in order of rank, and what went wrong if anything."""
    if question.error:
        return [], question.error
    if question.profile == "published":
        found = _published(question, rows)
    else:
        try:
            found = _standard(question, evidence)
        except (InputError, ValidationError):
            return [], _("The standard rule cannot judge with this threshold.")
    made = [Answer(row, *found[row.intervention_id]) for row in rows]
    return sorted(made, key=lambda a: (a.rank is None, a.rank or 0, a.item.order)), ""


def _published(
    question: Question, rows: Sequence[Contribution]
) -> dict[str, tuple[str, int | None]]:
    known = {r.intervention_id: r.coefficient for r in rows}
    shifted = {n: -math.inf if v is None else v - question.threshold for n, v in known.items()}
    chosen = select(layout_of(rows), shifted, question.budget)
    return {name: (v.status, v.rank) for name, v in chosen.verdicts.items()}


def _standard(question: Question, evidence: Evidence | None) -> dict[str, tuple[str, int | None]]:
    if evidence is None:
        raise InputError("the gate's observations are not here")
    settings = StandardSettings(retire_margin=question.threshold)
    report = refit(evidence.gate, profile="standard", budget=question.budget, settings=settings)
    return {r["intervention_id"]: (r["status"], r["rank"]) for r in report["contributions"]}


def layout_of(rows: Sequence[Contribution]) -> Layout:
    """The slots that rows describe; their texts are not needed to select."""
    grouped: dict[str, list[Contribution]] = {}
    for row in rows:
        grouped.setdefault(row.logical_chunk_id, []).append(row)
    slots, interventions = [], {}
    for order, (slot_id, members) in enumerate(grouped.items(), 1):
        old = next((m.intervention_id for m in members if m.kind == "current"), None)
        slots.append(Slot(slot_id, old, tuple(m.intervention_id for m in members)))
        for m in members:
            interventions[m.intervention_id] = Intervention(
                "current" if m.kind == "current" else "candidate",
                "REWRITE" if m.operation == "REWRITE" else "ADD" if m.operation else None,
                slot_id,
                order,
                Chunk(m.intervention_id, m.intervention_id),
            )
    return Layout(tuple(slots), interventions)
