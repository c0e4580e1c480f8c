"""Curricula: a frozen bank, the probability q of a skill-free group and a rho for each chunk.

A curriculum is identified by ``state_id``, which covers everything that a treatment depends on.
Two schemas exist. v1 is the published one, bit for bit; it hashes the absolute path of the bank, so
equal curricula of two machines differ. v2, the default, keeps the path as a note outside the hash,
so that equal inputs give equal treatments everywhere. Specification: training.md §§2, 9.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from trainer.canonical import fingerprint
from trainer.errors import InputError
from trainer.files import read_json, write_json
from trainer.reading import Node
from trainer.skills.types import Chunk

Schema = Literal["v1", "v2"]
SCHEMAS: Mapping[Schema, str] = {
    "v1": "shopsimrl-skill-curriculum-v1",
    "v2": "intraskill-skill-curriculum-v2",
}
HASHED_KEYS = ("round_id", "seed", "skill_free_probability", "chunks", "source")


@dataclass(frozen=True, slots=True)
class CurriculumChunk:
    """A chunk with its estimated effect (reward units) and its inclusion probability rho."""

    chunk: Chunk
    contribution: float
    inclusion_probability: float


@dataclass(frozen=True, slots=True)
class Curriculum:
    """A validated curriculum; ``document`` is what lies, or will lie, on disk."""

    round_id: str
    seed: int
    skill_free_probability: float
    entries: tuple[CurriculumChunk, ...]
    state_id: str
    document: Mapping[str, Any]

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """The chunks in the order in which prompts show them."""
        return tuple(entry.chunk for entry in self.entries)

    @property
    def rho(self) -> dict[str, float]:
        """Inclusion probability by chunk id."""
        return {entry.chunk.skill_id: entry.inclusion_probability for entry in self.entries}

    def identity(self) -> dict[str, Any]:
        """The curriculum as plans and triage records name it."""
        return {
            "schema_version": self.document["schema_version"],
            "state_id": self.state_id,
            "round_id": self.round_id,
            "seed": self.seed,
            "skill_free_probability": self.skill_free_probability,
            "chunk_ids": [entry.chunk.skill_id for entry in self.entries],
        }


def state_id(document: Mapping[str, Any]) -> str:
    """The hash over exactly the five keys that decide a treatment."""
    return fingerprint({key: document[key] for key in HASHED_KEYS})


def load_curriculum(path: Path) -> Curriculum:
    """Read a curriculum of either schema; raises InputError when it is missing or was changed."""
    return parse_curriculum(read_json(path), file=path)


def write_curriculum(path: Path, curriculum: Curriculum) -> None:
    """Publish the curriculum's document atomically."""
    write_json(path, curriculum.document)


def parse_curriculum(document: object, *, file: Path | None = None) -> Curriculum:
    """Validate a parsed curriculum: types, ranges, unique ids and the recomputed ``state_id``."""
    root = Node(document, file)
    schema = root.get("schema_version")
    if schema.value not in SCHEMAS.values():
        known = ", ".join(SCHEMAS.values())
        raise schema.error("unsupported curriculum", f"expected one of {known}")
    for key in (*HASHED_KEYS, "state_id"):
        root[key]
    entries = tuple(_parse_chunk(item) for item in root["chunks"])
    ids = [entry.chunk.skill_id for entry in entries]
    if len(set(ids)) != len(ids):
        raise InputError("ids must be unique", file=file, field="chunks", value=ids)
    stated = root["state_id"].text()
    expected = state_id(root.mapping())
    if stated != expected:
        raise root["state_id"].error(
            f"does not match the content, whose hash is {expected}",
            "a frozen curriculum is never edited: build a new one",
        )
    return Curriculum(
        root["round_id"].text(),
        root["seed"].integer(),
        probability(root["skill_free_probability"]),
        entries,
        stated,
        root.mapping(),
    )


def _parse_chunk(item: Node) -> CurriculumChunk:
    version, metadata = item.get("version"), item.get("metadata")
    return CurriculumChunk(
        chunk=Chunk(
            item["skill_id"].text(),
            item["content"].text(),
            "1" if version.value is None else version.string(),
            {} if metadata.value is None else dict(metadata.mapping()),
        ),
        contribution=item["contribution"].number(),
        inclusion_probability=probability(item["inclusion_probability"]),
    )


def probability(value: Node) -> float:
    """``value`` as a float between 0 and 1."""
    result = value.number()
    if not 0.0 <= result <= 1.0:
        raise value.error("must lie between 0 and 1")
    return result
