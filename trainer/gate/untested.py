"""The next bank where no gate tests the candidates: the ablation that shows what a gate is for."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from trainer.gate.pool import Candidate, CandidatePool
from trainer.skills.bank import SkillBank, bank_document
from trainer.skills.types import Chunk

UNTESTED = "untested"


def accepted(pool: CandidatePool, bank: SkillBank, *, budget: int) -> dict[str, Any]:
    """The document of the next bank: this one with every candidate of the pool.

    A rewrite takes its target's place; additions follow in the pool's order while ``budget``
    allows. A chunk that nobody measured gets the median effect of the measured ones (1.0 where
    there are none), so that the curriculum shows it as often as a usual chunk.
    """
    effect = _usual_effect(bank.chunks)
    rewrites = {c.target_chunk_id: c for c in pool.candidates if c.operation == "REWRITE"}
    chunks = [
        _chunk(chunk.skill_id, rewrites[chunk.skill_id], effect)
        if chunk.skill_id in rewrites
        else chunk
        for chunk in bank.chunks
    ]
    added = [c for c in pool.candidates if c.operation == "ADD"]
    room = max(0, budget - len(chunks))
    chunks += [_chunk(c.candidate_id, c, effect) for c in added[:room]]
    return bank_document(
        chunks,
        bank_version=f"online-{pool.round_id}-untested-v1",
        metadata={
            "round_id": pool.round_id,
            "proposal_checkpoint": pool.proposal_checkpoint,
            "pool_sha256": pool.pool_sha256,
            "active_skill_budget": budget,
            "selected_count": len(chunks),
        },
    )


def _usual_effect(chunks: Sequence[Chunk]) -> float:
    effects = [float(chunk.metadata.get("estimated_effect") or 0.0) for chunk in chunks]
    return median([effect for effect in effects if effect > 0] or [1.0])


def _chunk(skill_id: str, candidate: Candidate, effect: float) -> Chunk:
    return Chunk(
        skill_id,
        candidate.content,
        candidate.version or "candidate",
        {
            **candidate.metadata,
            "validation_result": UNTESTED,
            "estimated_effect": effect,
            "selected_intervention_id": candidate.candidate_id,
        },
    )
