"""The proposal ledger: what became of every candidate of an experiment, gate after gate.

One row a candidate, in the order of first proposal. The analyst appends proposals; each gate
attaches results, to new candidates and to earlier ones that are active now. The ledger is shown to
the compiler and never to the policy. Specification: gate-analysis.md §9.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainer.files import read_jsonl
from trainer.gate.pool import Candidate, CandidatePool
from trainer.gate.selection import Selection, Verdict
from trainer.reading import Node

Row = dict[str, Any]


def load_ledger(path: Path) -> list[Row]:
    """The rows of a ledger file: the last record of an id wins, in first-seen order.

    A missing file is an empty history. Raises InputError for a row without an id.
    """
    rows: dict[str, Row] = {}
    for number, row in enumerate(read_jsonl(path), 1):
        line = Node(row, path, f"line {number}")
        if line.get("validation_history").value is not None:
            for event in line["validation_history"]:
                event.mapping()
        rows[line["candidate_id"].text()] = line.mapping()
    return list(rows.values())


def proposal_row(candidate: Candidate, proposal_checkpoint: str) -> Row:
    """The row of a proposal that no gate has judged yet."""
    return {
        "candidate_id": candidate.candidate_id,
        "operation": candidate.operation,
        "target_chunk_id": candidate.target_chunk_id,
        "source_card_ids": list(candidate.metadata.get("evidence_card_ids") or []),
        "failure_mechanism": candidate.metadata.get("failure_mechanism", ""),
        "proposal_checkpoint": proposal_checkpoint,
        "stage": "online",
        "consolidation_cluster_id": candidate.metadata.get("consolidation_cluster_id"),
        "replacement_family_id": candidate.target_chunk_id,
        "content": candidate.content,
        "validation_result": None,
        "estimated_effect": None,
        "contribution_rank": None,
        "notes": None,
    }


def append_proposals(history: Iterable[Row], pool: CandidatePool) -> list[Row]:
    """The ledger as the analyst leaves it: the history, then this round's new proposals."""
    rows = {row["candidate_id"]: dict(row) for row in history}
    for candidate in pool.candidates:
        fresh = proposal_row(candidate, pool.proposal_checkpoint)
        rows[candidate.candidate_id] = {**rows.get(candidate.candidate_id, {}), **fresh}
    return list(rows.values())


def attach_results(
    history: Sequence[Row],
    pool: CandidatePool,
    selection: Selection,
    *,
    evaluation_checkpoint: str,
    estimator: str,
    bare_observations_sha256: str,
    assignment_sha256: str,
) -> list[Row]:
    """The ledger after a gate: results of active earlier proposals, then of this round's."""
    rows = {row["candidate_id"]: dict(row) for row in history}
    common = {
        "proposal_checkpoint": pool.proposal_checkpoint,
        "evaluation_checkpoint": evaluation_checkpoint,
        "validation_estimator": estimator,
        "bare_validation_observations_sha256": bare_observations_sha256,
    }
    source = {"pool_sha256": pool.pool_sha256, "assignment_sha256": assignment_sha256}
    for chunk in pool.current:
        origin = chunk.metadata.get("selected_intervention_id") or chunk.skill_id
        if origin in rows:
            verdict = selection.verdicts[chunk.skill_id]
            status = verdict.status if verdict.status in ("selected", "held") else "retired"
            rows[origin]["active_chunk_id"] = chunk.skill_id
            _attach(rows[origin], {**common, **_result(verdict, status), **source})
    for candidate in pool.candidates:
        name = candidate.candidate_id
        row = rows.setdefault(name, {})
        row |= proposal_row(candidate, pool.proposal_checkpoint)
        verdict = selection.verdicts[name]
        _attach(row, {**common, **_result(verdict, verdict.status), **source})
    return list(rows.values())


def _result(verdict: Verdict, status: str) -> Row:
    return {
        "intervention_id": verdict.intervention_id,
        "validation_result": status,
        "estimated_effect": verdict.effect,
        "contribution_rank": verdict.rank,
    }


def _attach(row: Row, event: Mapping[str, Any]) -> None:
    """Write the newest result into the row and keep it in the history, once a gate."""

    def gate_of(entry: Mapping[str, Any]) -> tuple[Any, ...]:
        return (
            entry.get("assignment_sha256"),
            entry.get("validation_estimator"),
            entry.get("bare_validation_observations_sha256"),
        )

    row |= event
    earlier = [e for e in row.get("validation_history") or [] if gate_of(e) != gate_of(event)]
    row["validation_history"] = [*earlier, dict(event)]
