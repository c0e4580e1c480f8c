"""SkillBank files: the ordered chunks that make up the skill of one moment.

A bank is identified by the fingerprint of its whole parsed content: metadata, disabled records and
unknown keys count, white space and key order do not. Reading guarantees unique non-blank ids and
non-blank texts. Specification: training.md §1.2, gate-analysis.md §0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainer.canonical import fingerprint
from trainer.errors import InputError
from trainer.files import read_json, write_json
from trainer.skills.types import Chunk

SCHEMA = "shopsimrl-skillbank-v1"


@dataclass(frozen=True, slots=True)
class SkillBank:
    """The active chunks of a bank in file order, and what identifies the bank.

    ``scopes`` holds the task ids of chunks that are meant for some tasks only; a chunk that is not
    in it is global.
    """

    chunks: tuple[Chunk, ...]
    bank_sha256: str
    bank_version: str = "1"
    metadata: Mapping[str, Any] = field(default_factory=dict)
    scopes: Mapping[str, frozenset[int]] = field(default_factory=dict)

    def identity(self) -> dict[str, Any]:
        """The bank as evaluation plans record it."""
        return {
            "provider": "json_skillbank",
            "schema_version": SCHEMA,
            "bank_version": self.bank_version,
            "bank_sha256": self.bank_sha256,
        }

    def for_task(self, task_id: int) -> tuple[Chunk, ...]:
        """The chunks that apply to one task, in file order."""
        return tuple(
            chunk
            for chunk in self.chunks
            if chunk.skill_id not in self.scopes or task_id in self.scopes[chunk.skill_id]
        )


def parse_bank(document: object, *, file: Path | None = None) -> SkillBank:
    """A bank from its parsed JSON. Raises InputError naming the record that breaks a rule."""
    if not isinstance(document, dict):
        raise InputError("a skill bank must be a JSON object", file=file)
    schema = document.get("schema_version", SCHEMA)
    if schema != SCHEMA:
        raise InputError(
            "unsupported skill bank",
            file=file,
            field="schema_version",
            value=schema,
            remedy=f"expected {SCHEMA}",
        )
    records = document.get("skills")
    if not isinstance(records, list):
        raise InputError("must be a list", file=file, field="skills", value=records)
    chunks: list[Chunk] = []
    scopes: dict[str, frozenset[int]] = {}
    seen: set[str] = set()
    for index, record in enumerate(records):
        where = f"skills[{index}]"
        chunk, scope = _parse_record(record, where, file)
        if chunk.skill_id in seen:
            raise InputError("ids must be unique", file=file, field=where, value=chunk.skill_id)
        seen.add(chunk.skill_id)
        if record.get("enabled", True) is False:
            continue
        chunks.append(chunk)
        if scope is not None:
            scopes[chunk.skill_id] = scope
    return SkillBank(
        chunks=tuple(chunks),
        bank_sha256=fingerprint(document),
        bank_version=str(document.get("bank_version", "1")),
        metadata=_object(document.get("metadata"), "metadata", file),
        scopes=scopes,
    )


def load_bank(path: Path) -> SkillBank:
    """Read a bank file; raises InputError when it is missing or breaks a rule."""
    return parse_bank(read_json(path), file=path)


def bank_document(
    chunks: Iterable[Chunk], *, bank_version: str, metadata: Mapping[str, Any]
) -> dict[str, Any]:
    """The JSON document of a bank whose chunks are all active and global."""
    return {
        "schema_version": SCHEMA,
        "bank_version": bank_version,
        "metadata": dict(metadata),
        "skills": [
            {
                "skill_id": chunk.skill_id,
                "version": chunk.version,
                "enabled": True,
                "content": chunk.content,
                "metadata": dict(chunk.metadata),
            }
            for chunk in chunks
        ],
    }


def write_bank(
    path: Path, chunks: Iterable[Chunk], *, bank_version: str, metadata: Mapping[str, Any]
) -> SkillBank:
    """Publish a bank atomically and return it as it will be read again."""
    document = bank_document(chunks, bank_version=bank_version, metadata=metadata)
    bank = parse_bank(document, file=path)
    write_json(path, document)
    return bank


def _parse_record(
    record: object, where: str, file: Path | None
) -> tuple[Chunk, frozenset[int] | None]:
    if not isinstance(record, dict):
        raise InputError("must be an object", file=file, field=where, value=record)
    skill_id = record.get("skill_id")
    if not isinstance(skill_id, str) or not skill_id.strip():
        raise InputError(
            "must be a non-blank string", file=file, field=f"{where}.skill_id", value=skill_id
        )
    content = record.get("content")
    if not isinstance(content, str) or not content.strip():
        raise InputError(
            "must be a non-blank string", file=file, field=f"{where}.content", value=content
        )
    metadata = _object(record.get("metadata"), f"{where}.metadata", file)
    chunk = Chunk(skill_id, content, str(record.get("version", "1")), metadata)
    return chunk, _scope(record.get("task_ids"), f"{where}.task_ids", file)


def _scope(value: object, where: str, file: Path | None) -> frozenset[int] | None:
    if value is None:
        return None
    if not isinstance(value, list) or any(type(task) is not int for task in value):
        raise InputError("must be a list of task ids or null", file=file, field=where, value=value)
    return frozenset(value)


def _object(value: object, where: str, file: Path | None) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError("must be an object", file=file, field=where, value=value)
    return dict(value)
