"""Candidate pools: the active chunks of a round and the changes proposed to them.

A pool is frozen by the analyst and read by the gate. Reading and building obey the same rules, and
the hash covers everything but the time. Specification: gate-analysis.md §1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from trainer.canonical import fingerprint, utc_now
from trainer.errors import InputError
from trainer.files import read_json
from trainer.skills.bank import SkillBank
from trainer.skills.types import Chunk

SCHEMA = "shopsimrl-skill-candidate-pool-v1"
Operation = Literal["ADD", "REWRITE"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposed text: a new chunk (ADD) or another text for an active chunk (REWRITE)."""

    candidate_id: str
    operation: Operation
    target_chunk_id: str | None
    content: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    version: str | None = None

    def to_record(self) -> dict[str, Any]:
        """The candidate as the pool stores it."""
        record: dict[str, Any] = {
            "candidate_id": self.candidate_id,
            "operation": self.operation,
            "target_chunk_id": self.target_chunk_id,
            "content": self.content,
            "metadata": dict(self.metadata),
        }
        return record if self.version is None else {**record, "version": self.version}


@dataclass(frozen=True, slots=True)
class CandidatePool:
    """A validated pool. ``current`` keeps the bank's order, ``candidates`` the compiler's."""

    round_id: str
    proposal_checkpoint: str
    current_skillbank_sha256: str
    current: tuple[Chunk, ...]
    candidates: tuple[Candidate, ...]
    pool_sha256: str


def candidate_id(operation: Operation, target_chunk_id: str | None, content: str) -> str:
    """The id of a proposal: equal proposals have equal ids in every round."""
    signature = {"operation": operation, "target_chunk_id": target_chunk_id, "content": content}
    return "online-" + fingerprint(signature)[:16]


def pool_document(
    *,
    round_id: str,
    proposal_checkpoint: str,
    bank: SkillBank,
    candidates: Sequence[Candidate],
) -> dict[str, Any]:
    """The pool file of a round, validated and hashed. Raises InputError when a rule is broken."""
    document: dict[str, Any] = {
        "schema_version": SCHEMA,
        "created_at": utc_now(),
        "round_id": round_id,
        "proposal_checkpoint": proposal_checkpoint,
        "current_skillbank_sha256": bank.bank_sha256,
        "current_skills": [
            {
                "skill_id": chunk.skill_id,
                "version": chunk.version,
                "content": chunk.content,
                "metadata": dict(chunk.metadata),
            }
            for chunk in bank.chunks
        ],
        "candidates": [candidate.to_record() for candidate in candidates],
    }
    document["pool_sha256"] = pool_hash(document)
    parse_pool(document)
    return document


def pool_hash(document: Mapping[str, Any]) -> str:
    """The hash of a pool's content, without its time and without itself."""
    kept = {k: v for k, v in document.items() if k not in ("created_at", "pool_sha256")}
    return fingerprint(kept)


def load_pool(path: Path) -> CandidatePool:
    """Read a pool file; raises InputError when it is missing, damaged or breaks a rule."""
    return parse_pool(read_json(path), file=path)


def parse_pool(document: object, *, file: Path | None = None) -> CandidatePool:
    """Validate a parsed pool: schema, hash, ids, texts and targets."""
    if not isinstance(document, dict) or document.get("schema_version") != SCHEMA:
        found = document.get("schema_version") if isinstance(document, dict) else document
        raise InputError(
            "not a candidate pool",
            file=file,
            field="schema_version",
            value=found,
            remedy=f"expected {SCHEMA}",
        )
    expected = pool_hash(document)
    if document.get("pool_sha256") != expected:
        raise InputError(
            f"does not match the content, whose hash is {expected}",
            file=file,
            field="pool_sha256",
            value=document.get("pool_sha256"),
            remedy="a frozen pool is never edited: build a new one",
        )
    current = tuple(_current(item, i, file) for i, item in enumerate(document["current_skills"]))
    candidates = tuple(_candidate(item, i, file) for i, item in enumerate(document["candidates"]))
    current_ids = [chunk.skill_id for chunk in current]
    candidate_ids = [candidate.candidate_id for candidate in candidates]
    _require_unique(current_ids, "current_skills", file)
    _require_unique(candidate_ids, "candidates", file)
    _require_unique(current_ids + candidate_ids, "candidates and current_skills", file)
    for index, candidate in enumerate(candidates):
        if candidate.operation == "REWRITE" and candidate.target_chunk_id not in current_ids:
            raise InputError(
                "a rewrite needs an active chunk as its target",
                file=file,
                field=f"candidates[{index}].target_chunk_id",
                value=candidate.target_chunk_id,
                remedy="active: " + ", ".join(current_ids),
            )
    return CandidatePool(
        round_id=str(document["round_id"]),
        proposal_checkpoint=str(document["proposal_checkpoint"]),
        current_skillbank_sha256=str(document["current_skillbank_sha256"]),
        current=current,
        candidates=candidates,
        pool_sha256=expected,
    )


def _current(item: Mapping[str, Any], index: int, file: Path | None) -> Chunk:
    where = f"current_skills[{index}]"
    return Chunk(
        _text(item, "skill_id", where, file),
        _text(item, "content", where, file),
        str(item.get("version", "1")),
        dict(item.get("metadata") or {}),
    )


def _candidate(item: Mapping[str, Any], index: int, file: Path | None) -> Candidate:
    where = f"candidates[{index}]"
    operation = item.get("operation")
    if operation not in ("ADD", "REWRITE"):
        raise InputError(
            "must be ADD or REWRITE", file=file, field=f"{where}.operation", value=operation
        )
    target = item.get("target_chunk_id")
    if operation == "ADD" and target not in (None, ""):
        raise InputError(
            "an addition has no target", file=file, field=f"{where}.target_chunk_id", value=target
        )
    return Candidate(
        candidate_id=_text(item, "candidate_id", where, file),
        operation=operation,
        target_chunk_id=target or None,
        content=_text(item, "content", where, file),
        metadata=dict(item.get("metadata") or {}),
        version=None if item.get("version") is None else str(item["version"]),
    )


def _text(item: Mapping[str, Any], key: str, where: str, file: Path | None) -> str:
    value = item.get(key)
    if not isinstance(value, str) or not value.strip():
        raise InputError(
            "must be a non-blank string", file=file, field=f"{where}.{key}", value=value
        )
    return value


def _require_unique(ids: Sequence[str], where: str, file: Path | None) -> None:
    if len(set(ids)) != len(ids):
        twice = sorted({each for each in ids if ids.count(each) > 1})
        raise InputError("ids must be unique", file=file, field=where, value=twice)
