"""Randomised assignment: which versions each masked rollout of a task shows.

The published rule draws each slot's state from a hash of mask seed, task, sample and slot,
uniformly over absent and its versions. Nothing is stored that could not be drawn again, so the hash
of the assignment stands for the whole design. Specification: gate-analysis.md §3.

The standard profile makes its rows by another rule (``standard.design``) and keeps them in the same
values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.canonical import episode_seed, fingerprint, utc_now
from trainer.gate.slots import Layout
from trainer.rollout.types import evaluation_id

SCHEMA = "shopsimrl-online-skill-assignments-v1"


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one masked rollout shows. ``included`` lists the versions in prompt order."""

    task_id: int
    sample_id: int
    seed: int
    split: str
    slot_states: Mapping[str, str | None]
    included: tuple[str, ...]

    @property
    def episode_id(self) -> str:
        """The id of the rollout's trace."""
        return evaluation_id(self.task_id, self.sample_id)

    @property
    def key(self) -> tuple[str, int, int]:
        """(split, task, sample): what assigned skills are looked up by."""
        return (self.split, self.task_id, self.sample_id)

    def to_record(self, columns: Sequence[str]) -> dict[str, Any]:
        """The row of the assignment file."""
        return {
            "episode_id": self.episode_id,
            "task_id": self.task_id,
            "sample_id": self.sample_id,
            "seed": self.seed,
            "split": self.split,
            "mask": [int(column in self.included) for column in columns],
            "included_chunk_ids": list(self.included),
            "slot_states": dict(self.slot_states),
        }


def draw_state(mask_seed: int, key: tuple[str, int, int], slot_id: str, states: int) -> int:
    """Which of a slot's ``states`` a rollout shows: 0 is absent, k is its k-th version."""
    split, task_id, sample_id = key
    text = f"{mask_seed}:{split}:{task_id}:{sample_id}:{slot_id}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % states


def draw_assignments(
    layout: Layout, *, task_ids: Sequence[int], split: str, experiment_seed: int, mask_seed: int
) -> tuple[Assignment, ...]:
    """One masked rollout (sample 0) for every task, in the order of ``task_ids``."""
    rows: list[Assignment] = []
    for task_id in task_ids:
        states: dict[str, str | None] = {}
        for slot in layout.slots:
            drawn = draw_state(mask_seed, (split, task_id, 0), slot.slot_id, len(slot.states))
            states[slot.slot_id] = slot.states[drawn]
        rows.append(
            Assignment(
                task_id=task_id,
                sample_id=0,
                seed=episode_seed(experiment_seed, task_id, 0),
                split=split,
                slot_states=states,
                included=tuple(version for version in states.values() if version is not None),
            )
        )
    return tuple(rows)


def design_matrix(rows: Sequence[Assignment], columns: Sequence[str]) -> NDArray[np.float64]:
    """The 0/1 masks, one row a rollout and one column a version."""
    index = {column: position for position, column in enumerate(columns)}
    matrix = np.zeros((len(rows), len(columns)))
    for row, assignment in enumerate(rows):
        matrix[row, [index[version] for version in assignment.included]] = 1.0
    return matrix


def assignment_document(
    layout: Layout,
    rows: Sequence[Assignment],
    *,
    mask_seed: int,
    pool_sha256: str,
    schema: str = SCHEMA,
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The assignment file with its hash, which covers everything but schema and time.

    ``extra`` holds what the published schema has no place for.
    """
    hashed: dict[str, Any] = {
        **(extra or {}),
        "mask_seed": mask_seed,
        "pool_sha256": pool_sha256,
        "columns": list(layout.columns),
        "slots": [slot.to_record() for slot in layout.slots],
        "assignments": [row.to_record(layout.columns) for row in rows],
    }
    return {
        "schema_version": schema,
        "created_at": utc_now(),
        **hashed,
        "assignment_sha256": fingerprint(hashed),
    }
