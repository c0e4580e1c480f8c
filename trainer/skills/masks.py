"""Which chunks a group of rollouts sees: a pure function of curriculum and group.

All rollouts of a group share one treatment. It is drawn in two levels: with probability q the
group is skill-free; otherwise each chunk is visible with its own rho, so that a chunk is seen by
(1-q)·rho of all groups. No generator and no state: order of work, concurrency and resuming cannot
change a treatment.
Specification: training.md §3, golden vectors in its appendix A.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Literal

from trainer.skills.curriculum import Curriculum
from trainer.skills.types import Chunk

Mode = Literal["skill_free", "assisted", "assisted_empty", "diagnostic_full_skill"]


@dataclass(frozen=True, slots=True)
class Treatment:
    """What one group sees: its mode and the visible chunk ids in curriculum order."""

    mode: Mode
    skill_ids: tuple[str, ...]

    def to_record(self, curriculum: Curriculum, group_index: int) -> dict[str, Any]:
        """The assignment as traces record it."""
        return {
            "state_id": curriculum.state_id,
            "group_key": str(group_index),
            "mode": self.mode,
            "skill_ids": list(self.skill_ids),
        }


def draw(curriculum: Curriculum, key: int | str, label: str) -> float:
    """A number in [0, 1), uniform over keys and labels."""
    text = f"{curriculum.seed}:{curriculum.state_id}:{key}:{label}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64


def treatment(curriculum: Curriculum, group_index: int) -> Treatment:
    """The treatment of a group; ``group_index`` counts over the whole experiment."""
    if draw(curriculum, group_index, "skill-free") < curriculum.skill_free_probability:
        return Treatment("skill_free", ())
    visible = tuple(
        entry.chunk.skill_id
        for entry in curriculum.entries
        if draw(curriculum, group_index, f"chunk:{entry.chunk.skill_id}")
        < entry.inclusion_probability
    )
    return Treatment("assisted" if visible else "assisted_empty", visible)


def full_skill(curriculum: Curriculum) -> Treatment:
    """The treatment of a diagnostic retry: everything, never drawn."""
    return Treatment(
        "diagnostic_full_skill", tuple(entry.chunk.skill_id for entry in curriculum.entries)
    )


def visible_chunks(curriculum: Curriculum, given: Treatment) -> tuple[Chunk, ...]:
    """The chunks of a treatment, in curriculum order."""
    wanted = set(given.skill_ids)
    return tuple(chunk for chunk in curriculum.chunks if chunk.skill_id in wanted)
