"""The allow-lists: only fields named here leave a run folder.

A specification is ``True`` (a plain value or a list of plain values), a list of one specification
(each item), or a mapping by key, where ``*`` stands for any key. Goals, purchases, personas,
prompts, evidence cards and places of files are in none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PLAIN = (str, int, float, bool, type(None))
NUMBERS: dict[str, Any] = {"*": True}

CHUNK: dict[str, Any] = {
    "skill_id": True, "version": True, "enabled": True, "content": True, "content_sha256": True,
    "metadata": {
        "title": True, "operation": True, "estimated_effect": True, "contribution_rank": True,
        "validation_result": True, "selected_intervention_id": True,
    },
}  # fmt: skip
BANK = {"schema_version": True, "bank_version": True, "skills": [CHUNK]}
CURRICULUM = {
    "schema_version": True, "round_id": True, "seed": True, "skill_free_probability": True,
    "state_id": True,
    "chunks": [{**CHUNK, "inclusion_probability": True, "contribution": True,
                "estimated_contribution": True, "target_inclusion_probability": True}],
    "source": {"skillbank_sha256": True, "probability_mapping": NUMBERS},
}  # fmt: skip
CANDIDATE = {
    "candidate_id": True, "operation": True, "target_chunk_id": True, "content": True,
    "metadata": {"title": True},
}  # fmt: skip
POOL = {
    "schema_version": True, "round_id": True, "current_skillbank_sha256": True,
    "pool_sha256": True, "current_skills": [CHUNK], "candidates": [CANDIDATE],
}  # fmt: skip
LEDGER = {
    "candidate_id": True, "operation": True, "target_chunk_id": True, "validation_result": True,
    "estimated_effect": True, "contribution_rank": True,
}  # fmt: skip
OBSERVATION = {
    "episode_id": True, "split": True, "task_id": True, "sample_id": True, "mask": True,
    "included_chunk_ids": True, "reward": True, "bare_reward": True, "reward_detail": NUMBERS,
    "bare_reward_detail": NUMBERS,
}  # fmt: skip
CONTRIBUTION = {
    "intervention_id": True, "kind": True, "logical_chunk_id": True, "operation": True,
    "order": True, "coefficient": True, "rank": True, "status": True,
    "auxiliary_coefficients": NUMBERS,
}  # fmt: skip
CONTRIBUTIONS = {
    "schema_version": True, "pool_sha256": True, "assignment_sha256": True, "observations": True,
    "requested_observations": True, "active_skill_budget": True,
    "selected_intervention_ids": True, "selected_count": True,
    "contributions": [CONTRIBUTION], "observations_table": [OBSERVATION],
}  # fmt: skip
GATE_SETTINGS = {"standard": NUMBERS}
SUMMARY = {
    "schema_version": True, "counts": NUMBERS, "primary": NUMBERS, "reward_components": NUMBERS,
    "behavior": {"*": True, "termination_reasons": NUMBERS},
    "cost": {"duration_ms_mean": True, "tokens": NUMBERS},
}  # fmt: skip
WORLD = {"profile": True}
POLICY = {"engine": True, "temperature": True, "max_new_tokens": True, "threads": True}
CONFIG = {
    "stage": True, "name": True, "round_id": True, "seed": True, "mask_seed": True, "steps": True,
    "proposal_checkpoint": True, "batch_size": True, "attempts": True, "max_turns": True,
    "record_tokens": True, "profile": True, "active_skill_budget": True, "min_coverage": True,
    "world": WORLD, "policy": POLICY, "rollout": NUMBERS, "optimiser": NUMBERS, "standard": NUMBERS,
    "skills": {"provider": True, "max_skills": True},
    "analyst": {"kind": True, "max_candidates": True},
}  # fmt: skip
TASKS = {"tasks": {"split": True, "limit": True, "sample_size": True, "repeats": True}}


def allowed(value: Any, spec: Any) -> Any:
    """``value`` reduced to what ``spec`` names; a value of another shape is left out (None)."""
    if spec is True:
        if isinstance(value, list):
            return [item for item in value if isinstance(item, PLAIN)]
        return value if isinstance(value, PLAIN) else None
    if isinstance(spec, list):
        items = value if isinstance(value, list) else []
        return [allowed(item, spec[0]) for item in items]
    if not isinstance(value, Mapping):
        return None
    kept = {}
    for key, item in value.items():
        inner = spec.get(key, spec.get("*"))
        if inner is not None and (reduced := allowed(item, inner)) is not None:
            kept[key] = reduced
        elif inner is not None and item is None:
            kept[key] = None
    return kept
