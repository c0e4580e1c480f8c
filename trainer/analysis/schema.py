"""The result document. Each number carries how many observations stand behind it (``n``), what
they are (``of``) and the file it was computed from (``source``, relative to the run's folder).

Names follow the published analysis where it has the same thing (gate-analysis.md §14).
"""

from __future__ import annotations

from typing import Any

from trainer.analysis.schema_outcomes import (
    Arm,
    BehaviourPair,
    Case,
    Cohort,
    Contrast,
    Test,
    UpdateSummary,
)
from trainer.analysis.schema_rounds import Bank, Candidate, Coefficient, Gate, Round
from trainer.analysis.schema_values import Figure, Record, Table

SCHEMA = "intraskill-analysis-v1"


class Analysis(Record):
    """The whole document. ``missing`` says in words what the folder could not give."""

    schema_version: str
    name: str
    kind: str
    seed: int | None
    rounds: list[Round]
    gates: list[Gate]
    coefficients: list[Coefficient]
    banks: list[Bank]
    candidates: list[Candidate]
    tests: list[Test]
    recorded: list[Contrast]
    ranking: list[Arm]
    ranking_contrasts: list[Contrast]
    training: Table
    updates: Table
    update_summaries: list[UpdateSummary]
    cohorts: list[Cohort]
    pairs: list[BehaviourPair]
    cases: list[Case]
    facts: dict[str, Figure]
    settings: dict[str, Any]
    sources: dict[str, str]
    missing: list[str]
