"""One round's analysis: pending groups in, candidate pool, ledger and summary out.

Without an analyst no card is written and no candidate proposed; the pool then holds the active
chunks only, so that the gate can still judge them. The ledger of earlier rounds is always carried
on, whatever happens here. Specification: gate-analysis.md §§1, 9, 12.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainer.analyst.triage_queue import pending_groups
from trainer.canonical import fingerprint, utc_now
from trainer.config import AnalystConfig
from trainer.errors import InputError
from trainer.files import write_json, write_jsonl
from trainer.gate.ledger import Row, append_proposals, load_ledger
from trainer.gate.pool import Candidate, parse_pool, pool_document
from trainer.progress import Progress
from trainer.skills.bank import load_bank

SUMMARY_SCHEMA = "shopsimrl-online-failure-analysis-v1"


def run_analysis(config: AnalystConfig) -> dict[str, Any]:
    """Write ``candidate_pool.json``, ``proposal_ledger.jsonl`` and ``analysis_summary.json``.

    The summary is written last: where it lies, the analysis is whole. Raises InputError when the
    training round, the bank or the ledger's history cannot be used.
    """
    folder = config.output_dir
    bank = load_bank(config.skillbank)
    pending = pending_groups(config.training_dir, bank)
    progress = Progress(folder / "progress.json", unit="group", total=len(pending))
    cards: list[dict[str, Any]] = []
    candidates: list[Candidate] = []
    history = _history(config.ledger_history)
    document = pool_document(
        round_id=config.round_id,
        proposal_checkpoint=config.proposal_checkpoint,
        bank=bank,
        candidates=candidates,
    )
    pool = parse_pool(document)
    write_json(folder / "candidate_pool.json", document)
    write_jsonl(folder / "proposal_ledger.jsonl", append_proposals(history, pool), compact=False)
    summary = {
        "schema_version": SUMMARY_SCHEMA,
        "created_at": utc_now(),
        "round_id": config.round_id,
        "analyst": config.analyst.kind,
        "triage_groups": len(pending),
        "analyzed_cards": len(cards),
        "eligible_cards": 0,
        "candidates": len(candidates),
        "proposal_history_records": len(history),
        "evidence_only_card_ids": [],
        "candidate_pool_path": "candidate_pool.json",
        "pool_sha256": pool.pool_sha256,
        "current_skillbank_sha256": bank.bank_sha256,
        "compilation_input_sha256": fingerprint(
            {
                "cards": cards,
                "current_skillbank_sha256": bank.bank_sha256,
                "compiler": config.analyst.kind,
                "max_candidates": config.analyst.max_candidates,
                "proposal_checkpoint": config.proposal_checkpoint,
                "history": history,
            }
        ),
    }
    write_json(folder / "analysis_summary.json", summary)
    progress.update(len(pending))
    return summary


def _history(path: Path | None) -> list[Row]:
    """The ledger of earlier rounds. A ledger that is named must be there: losing it is an error."""
    if path is None:
        return []
    if not path.exists():
        raise InputError(
            "the proposal ledger of the earlier rounds is missing",
            file=path,
            remedy="Restore it, or leave ledger_history out in the first round",
        )
    return load_ledger(path)
