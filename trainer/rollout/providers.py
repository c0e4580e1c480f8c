"""Which chunks an episode's prompt shows: nothing, a bank, or what was assigned beforehand.

A provider is asked once for each job, before any rollout; its identity is part of the plan, so a
run cannot be resumed under another skill. Specification: training.md §1.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from trainer.canonical import fingerprint
from trainer.errors import InputError
from trainer.files import read_json
from trainer.rollout.types import EpisodeJob
from trainer.skills.bank import SkillBank
from trainer.skills.types import Chunk

JobKey = tuple[str, int, int]


class SkillAssignment(Protocol):
    """Decides the chunks of each job and says what it is."""

    def identity(self) -> dict[str, Any]:
        """``plan.skills`` and ``provenance.skills``."""
        ...

    def chunks_for(self, job: EpisodeJob) -> tuple[Chunk, ...]:
        """The chunks in prompt order."""
        ...


def arm_of(identity: Mapping[str, Any]) -> str:
    """The arm that ``plan.skills`` makes, in a word for logs."""
    words = {"none": "bare", "assigned_json_skillbank": "masked"}
    return words.get(str(identity.get("provider")), "full skill")


class NoSkills:
    """The bare arm."""

    def identity(self) -> dict[str, Any]:
        return {"provider": "none"}

    def chunks_for(self, job: EpisodeJob) -> tuple[Chunk, ...]:
        return ()


class BankSkills:
    """Every active chunk of a bank in file order, at most ``max_skills`` of them."""

    def __init__(self, bank: SkillBank, *, max_skills: int | None = None) -> None:
        self._bank = bank
        self._max_skills = max_skills

    def identity(self) -> dict[str, Any]:
        return {**self._bank.identity(), "max_skills": self._max_skills}

    def chunks_for(self, job: EpisodeJob) -> tuple[Chunk, ...]:
        chosen = self._bank.for_task(job.task_id)[: self._max_skills]
        return tuple(self._scoped(chunk) for chunk in chosen)

    def _scoped(self, chunk: Chunk) -> Chunk:
        scope = "task" if chunk.skill_id in self._bank.scopes else "global"
        return replace(chunk, metadata={**chunk.metadata, "selection_scope": scope})


class AssignedSkills:
    """Chunks fixed for each job before any rollout, as a gate does.

    ``assignments`` maps (split, task id, sample id) to chunk ids. Unknown and repeated ids are
    refused at once, a job without an assignment when it is asked for.
    """

    def __init__(
        self,
        chunks: Iterable[Chunk],
        assignments: Mapping[JobKey, tuple[str, ...]],
        *,
        identity: Mapping[str, Any],
    ) -> None:
        self._chunks = {chunk.skill_id: chunk for chunk in chunks}
        self._assignments = dict(assignments)
        self._identity = {"provider": "assigned_json_skillbank", **identity}
        for key, ids in self._assignments.items():
            unknown = [skill_id for skill_id in ids if skill_id not in self._chunks]
            if unknown:
                raise InputError(f"job {key} is assigned unknown chunks", value=unknown)
            if len(set(ids)) != len(ids):
                raise InputError(f"job {key} is assigned a chunk twice", value=list(ids))

    def identity(self) -> dict[str, Any]:
        return dict(self._identity)

    def chunks_for(self, job: EpisodeJob) -> tuple[Chunk, ...]:
        key = (job.split, job.task_id, job.sample_id)
        if key not in self._assignments:
            raise InputError("no chunks are assigned to this job", field="assignments", value=key)
        return tuple(self._chunks[skill_id] for skill_id in self._assignments[key])


def load_assignment(path: Path, bank: SkillBank) -> AssignedSkills:
    """The provider of a file of rows: split, task, sample and ``included_chunk_ids``."""
    rows = read_json(path).get("assignments")
    if not isinstance(rows, list):
        raise InputError("must be a list", file=path, field="assignments", value=rows)
    assignments = {
        (row["split"], row["task_id"], row["sample_id"]): tuple(row["included_chunk_ids"])
        for row in rows
    }
    return AssignedSkills(
        bank.chunks,
        assignments,
        identity={"bank": bank.identity(), "assignment": {"sha256": fingerprint(rows)}},
    )
