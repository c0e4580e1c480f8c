"""The three files of a round's analysis: pool, ledger and, last of all, the summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from trainer.analyst.cards import ANALYST_ERROR
from trainer.analyst.compiler.compile import Compiled
from trainer.analyst.compiler.restructure import Restructuring
from trainer.analyst.desk import Desk
from trainer.analyst.triage_queue import Case
from trainer.canonical import utc_now
from trainer.files import read_json, write_json, write_jsonl
from trainer.gate.ledger import append_proposals
from trainer.gate.pool import Candidate, parse_pool, pool_document

SUMMARY_SCHEMA = "shopsimrl-online-failure-analysis-v1"
POOL, LEDGER, SUMMARY = "candidate_pool.json", "proposal_ledger.jsonl", "analysis_summary.json"
Card = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an analysis ended. ``partial``: not every case could be looked at; ``failed``: nothing
    came out; ``error`` says why in both cases. ``key`` identifies the compilation's inputs."""

    status: Literal["complete", "partial", "failed"]
    key: str
    candidates: tuple[Candidate, ...] = ()
    compiled: Compiled = field(default_factory=Compiled)
    error: Exception | None = None
    restructurings: tuple[Restructuring, ...] = ()


def publish(
    desk: Desk, cases: Sequence[Case], cards: Sequence[Card], outcome: Outcome
) -> dict[str, Any]:
    """Write pool, ledger and summary; returns the summary. The ledger keeps its whole history."""
    document = pool_document(
        round_id=desk.config.round_id,
        proposal_checkpoint=desk.config.proposal_checkpoint,
        bank=desk.bank,
        candidates=outcome.candidates,
    )
    pool = parse_pool(document)
    write_json(desk.folder / POOL, document)
    rows = append_proposals(desk.history, pool)
    write_jsonl(desk.folder / LEDGER, rows, compact=False)
    summary = {
        "schema_version": SUMMARY_SCHEMA,
        "created_at": utc_now(),
        "round_id": desk.config.round_id,
        "analyst": desk.config.analyst.kind,
        "status": outcome.status,
        "error": _error(outcome.error),
        **card_counts(cases, cards),
        "candidates": len(outcome.candidates),
        "low_support_candidates": sum(bool(c.metadata["low_support"]) for c in outcome.candidates),
        "proposal_history_records": len(desk.history),
        "evidence_only_card_ids": list(outcome.compiled.evidence_only),
        "restructurings": [each.to_record() for each in outcome.restructurings],
        "notes": list(outcome.compiled.notes),
        "compile_attempts": outcome.compiled.attempts,
        "accounting": accounting(cards, outcome.compiled),
        "candidate_pool_path": POOL,
        "pool_sha256": pool.pool_sha256,
        "current_skillbank_sha256": desk.bank.bank_sha256,
        "compilation_input_sha256": outcome.key,
    }
    write_json(desk.folder / SUMMARY, summary)
    return summary


def finished(folder: Path, key: str) -> dict[str, Any] | None:
    """The summary of the compilation of this very input, if it is on disk and whole."""
    if not (folder / SUMMARY).exists():
        return None
    summary: dict[str, Any] = read_json(folder / SUMMARY)
    if summary["compilation_input_sha256"] != key or summary["status"] != "complete":
        return None
    pool = read_json(folder / POOL)
    return summary if pool.get("pool_sha256") == summary["pool_sha256"] else None


def card_counts(cases: Sequence[Case], cards: Sequence[Card]) -> dict[str, Any]:
    """How many groups waited and why, and what became of them."""
    statuses = Counter(card["status"] for card in cards)
    triggers = Counter(case.trigger for case in cases)
    return {
        "triage_groups": len(cases),
        "triggers": dict(sorted(triggers.items())),
        "analyzed_cards": len(cards) - statuses[ANALYST_ERROR],
        "analyst_errors": statuses[ANALYST_ERROR],
        "eligible_cards": sum(bool(card["eligible_for_consolidation"]) for card in cards),
        "card_statuses": dict(sorted(statuses.items())),
    }


def accounting(cards: Sequence[Card], compiled: Compiled) -> dict[str, float]:
    """Calls, tokens and cost of the whole round, summed."""
    total: dict[str, float] = {}
    for each in [*(card.get("accounting", {}) for card in cards), compiled.accounting]:
        for name, value in each.items():
            if isinstance(value, int | float):
                total[name] = total.get(name, 0) + value
    return {name: round(value, 6) for name, value in sorted(total.items())}


def _error(error: Exception | None) -> dict[str, str] | None:
    return None if error is None else {"type": type(error).__name__, "message": str(error)}
