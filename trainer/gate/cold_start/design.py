"""Who sees what in a cold-start gate: every chunk is shown by a fair bit of a hash.

Specification: gate-analysis.md §10.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from trainer.canonical import episode_seed, fingerprint, utc_now
from trainer.gate.assignment import Assignment
from trainer.gate.cold_start.draft import Draft

SCHEMA = "shopsimrl-chunk-mask-assignments-v1"
MASK_PROBABILITY = 0.5


def draw_bit(mask_seed: int, key: tuple[str, int, int], chunk_id: str) -> bool:
    """Whether a rollout shows a chunk: the top bit of the draw is 0."""
    split, task_id, sample_id = key
    text = f"{mask_seed}:{split}:{task_id}:{sample_id}:{chunk_id}"
    draw = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return draw < MASK_PROBABILITY * 2**64


def draw_assignments(
    draft: Draft, *, task_ids: Sequence[int], split: str, experiment_seed: int, mask_seed: int
) -> tuple[Assignment, ...]:
    """One masked rollout (sample 0) for every task."""
    rows = []
    for task_id in task_ids:
        key = (split, task_id, 0)
        shown = {c.skill_id: draw_bit(mask_seed, key, c.skill_id) for c in draft.chunks}
        rows.append(
            Assignment(
                task_id=task_id,
                sample_id=0,
                seed=episode_seed(experiment_seed, task_id, 0),
                split=split,
                slot_states={name: name if bit else None for name, bit in shown.items()},
                included=tuple(name for name, bit in shown.items() if bit),
            )
        )
    return tuple(rows)


def assignment_document(
    draft: Draft, rows: Sequence[Assignment], *, mask_seed: int
) -> dict[str, Any]:
    """The assignment file with its hash."""
    ids = [chunk.skill_id for chunk in draft.chunks]
    records = [row.to_record(ids) for row in rows]
    hashed = {
        "mask_seed": mask_seed,
        "mask_probability": MASK_PROBABILITY,
        "draft_sha256": draft.draft_sha256,
        "chunk_ids": ids,
        "assignments": [{k: v for k, v in row.items() if k != "slot_states"} for row in records],
    }
    return {
        "schema_version": SCHEMA,
        "created_at": utc_now(),
        **hashed,
        "assignment_sha256": fingerprint(hashed),
    }
