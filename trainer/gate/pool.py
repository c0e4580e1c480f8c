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
from trainer.reading import Node
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
    root = Node(document, file)
    if root.get("schema_version").value != SCHEMA:
        raise root.get("schema_version").error("not a candidate pool", f"expected {SCHEMA}")
    expected = pool_hash(root.mapping())
    if root.get("pool_sha256").value != expected:
        raise root.get("pool_sha256").error(
            f"does not match the content, whose hash is {expected}",
            "a frozen pool is never edited: build a new one",
        )
    current = tuple(_current(item) for item in root["current_skills"])
    candidates = tuple(_candidate(item) for item in root["candidates"])
    current_ids = [chunk.skill_id for chunk in current]
    candidate_ids = [candidate.candidate_id for candidate in candidates]
    _require_unique(current_ids, "current_skills", file)
    _require_unique(candidate_ids, "candidates", file)
    _require_unique(current_ids + candidate_ids, "candidates and current_skills", file)
    for item, candidate in zip(root["candidates"], candidates, strict=True):
        if candidate.operation == "REWRITE" and candidate.target_chunk_id not in current_ids:
            raise item["target_chunk_id"].error(
                "a rewrite needs an active chunk as its target", "active: " + ", ".join(current_ids)
            )
    return CandidatePool(
        round_id=root["round_id"].text(),
        proposal_checkpoint=root["proposal_checkpoint"].string(),
        current_skillbank_sha256=root["current_skillbank_sha256"].string(),
        current=current,
        candidates=candidates,
        pool_sha256=expected,
    )


def _current(item: Node) -> Chunk:
    return Chunk(
        item["skill_id"].text(),
        item["content"].text(),
        _version(item) or "1",
        _metadata(item),
    )


def _candidate(item: Node) -> Candidate:
    operation = item["operation"].choice("ADD", "REWRITE")
    target = item.get("target_chunk_id")
    if operation == "ADD" and target.value not in (None, ""):
        raise target.error("an addition has no target")
    return Candidate(
        candidate_id=item["candidate_id"].text(),
        operation=operation,
        target_chunk_id=target.text() if operation == "REWRITE" else None,
        content=item["content"].text(),
        metadata=_metadata(item),
        version=_version(item),
    )


def _version(item: Node) -> str | None:
    return None if item.get("version").value is None else item["version"].string()


def _metadata(item: Node) -> dict[str, Any]:
    """The metadata, of which the ledger reads two keys."""
    if item.get("metadata").value is None:
        return {}
    metadata = item["metadata"]
    if metadata.get("selected_intervention_id").value is not None:
        metadata["selected_intervention_id"].text()
    if metadata.get("evidence_card_ids").value is not None:
        for card in metadata["evidence_card_ids"]:
            card.text()
    return dict(metadata.mapping())


def _require_unique(ids: Sequence[str], where: str, file: Path | None) -> None:
    if len(set(ids)) != len(ids):
        twice = sorted({each for each in ids if ids.count(each) > 1})
        raise InputError("ids must be unique", file=file, field=where, value=twice)
