"""A candidate pool, and later the gate's verdicts → ledger rows. Repeating it changes nothing."""

from __future__ import annotations

from pathlib import Path

from intraskill_web.core.text import storable, storable_json
from intraskill_web.experiments.models import Round
from intraskill_web.gates.models import GateRun
from intraskill_web.ledger.models import Candidate
from intraskill_web.skills.publish import title_of
from trainer.gate.pool import load_pool
from trainer.skills.bank import load_bank

POOLED = "pooled"
ADOPTED, NOT_ADOPTED = "selected", "not_adopted"


def publish_candidates(round_: Round, path: Path) -> int:
    """A row for every candidate of the pool; returns how many. Raises InputError for a bad pool."""
    pool = load_pool(path)
    for candidate in pool.candidates:
        Candidate.objects.get_or_create(
            round=round_,
            candidate_id=candidate.candidate_id,
            defaults={
                "experiment": round_.experiment,
                "operation": candidate.operation,
                "target_chunk_id": candidate.target_chunk_id or "",
                "title": title_of(candidate.content, candidate.metadata),
                "content": storable(candidate.content),
                "status": POOLED,
                "source_card_ids": storable_json(
                    list(candidate.metadata.get("evidence_card_ids", []))
                ),
            },
        )
    return len(pool.candidates)


def publish_untested(round_: Round, bank: Path) -> dict[str, int]:
    """Where no gate was: candidates that the bank took in, and those it did not; their numbers."""
    adopted = {
        str(chunk.metadata.get("selected_intervention_id")) for chunk in load_bank(bank).chunks
    }
    rows = Candidate.objects.filter(round=round_)
    rows.exclude(candidate_id__in=adopted).update(status=NOT_ADOPTED)
    taken = rows.filter(candidate_id__in=adopted).update(status=ADOPTED)
    return {"selected": len(load_bank(bank).chunks), "adopted": taken}


def publish_results(gate: GateRun) -> None:
    """What the gate of the same round made of each candidate."""
    for row in gate.contributions.filter(kind="candidate"):
        Candidate.objects.filter(round=gate.round, candidate_id=row.intervention_id).update(
            status=row.status, effect=row.coefficient, rank=row.rank
        )
