"""Slots: what a gate randomises, and the columns of its design.

A slot is a place in the skill. It holds an active chunk and all rewrites aimed at it, or one
addition; at any time it shows one of its versions or is absent, so that two versions of a chunk
never meet in one prompt. Every version has one 0/1 column; absence has none. Specification:
gate-analysis.md §2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from trainer.gate.pool import Candidate, CandidatePool, Operation
from trainer.skills.types import Chunk


@dataclass(frozen=True, slots=True)
class Intervention:
    """One version of one slot: a concrete text whose effect is estimated.

    ``order`` is the 1-based place of its slot in the prompt. ``chunk`` is the text as prompts show
    it, under the intervention's own id; a winner is stored under ``logical_chunk_id``.
    """

    kind: Literal["current", "candidate"]
    operation: Operation | None
    logical_chunk_id: str
    order: int
    chunk: Chunk

    @property
    def intervention_id(self) -> str:
        """The column's name."""
        return self.chunk.skill_id


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot and its versions; the old version comes first, rewrites by id."""

    slot_id: str
    old_version_id: str | None
    versions: tuple[str, ...]

    @property
    def states(self) -> tuple[str | None, ...]:
        """All states of the slot: absent, then each version."""
        return (None, *self.versions)

    def to_record(self) -> dict[str, Any]:
        """The slot as assignment files store it."""
        return {
            "slot_id": self.slot_id,
            "old_version_id": self.old_version_id,
            "versions": list(self.versions),
        }


@dataclass(frozen=True, slots=True)
class Layout:
    """The slots of a gate in prompt order and their versions in column order."""

    slots: tuple[Slot, ...]
    interventions: Mapping[str, Intervention]

    @property
    def columns(self) -> tuple[str, ...]:
        """Intervention ids in column order."""
        return tuple(self.interventions)

    def slot_of(self, intervention_id: str) -> Slot:
        """The slot that a version belongs to."""
        return next(slot for slot in self.slots if intervention_id in slot.versions)


def build_layout(pool: CandidatePool) -> Layout:
    """The slots of a pool: current chunks in bank order, then additions by id."""
    slots: list[Slot] = []
    interventions: dict[str, Intervention] = {}
    for order, chunk in enumerate(pool.current, 1):
        rewrites = sorted(
            (c for c in pool.candidates if c.target_chunk_id == chunk.skill_id),
            key=lambda candidate: candidate.candidate_id,
        )
        versions = (chunk.skill_id, *(rewrite.candidate_id for rewrite in rewrites))
        slots.append(Slot(chunk.skill_id, chunk.skill_id, versions))
        interventions[chunk.skill_id] = Intervention("current", None, chunk.skill_id, order, chunk)
        for rewrite in rewrites:
            interventions[rewrite.candidate_id] = Intervention(
                "candidate", "REWRITE", chunk.skill_id, order, _as_chunk(rewrite)
            )
    additions = sorted(
        (c for c in pool.candidates if c.operation == "ADD"),
        key=lambda candidate: candidate.candidate_id,
    )
    for order, addition in enumerate(additions, len(pool.current) + 1):
        name = addition.candidate_id
        slots.append(Slot(name, None, (name,)))
        interventions[name] = Intervention("candidate", "ADD", name, order, _as_chunk(addition))
    return Layout(tuple(slots), interventions)


def _as_chunk(candidate: Candidate) -> Chunk:
    metadata = {**candidate.metadata, "operation": candidate.operation}
    if candidate.operation == "REWRITE":
        metadata["target_chunk_id"] = candidate.target_chunk_id
    return Chunk(
        candidate.candidate_id, candidate.content, candidate.version or "candidate", metadata
    )
