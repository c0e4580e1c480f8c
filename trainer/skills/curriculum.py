"""Curricula: a frozen bank, the probability q of a skill-free group and a rho for each chunk.

A curriculum is identified by ``state_id``, which covers everything that a treatment depends on.
Two schemas exist. v1 is the published one, bit for bit; it hashes the absolute path of the bank, so
equal curricula of two machines differ. v2, the default, keeps the path as a note outside the hash,
so that equal inputs give equal treatments everywhere. Specification: training.md §§2, 9.1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from trainer.canonical import fingerprint, utc_now
from trainer.errors import InputError
from trainer.files import read_json, write_json
from trainer.reading import Node
from trainer.skills.bank import SkillBank
from trainer.skills.curriculum_budget import scale_for
from trainer.skills.types import Chunk

Schema = Literal["v1", "v2"]
SCHEMAS: Mapping[Schema, str] = {
    "v1": "shopsimrl-skill-curriculum-v1",
    "v2": "intraskill-skill-curriculum-v2",
}
HASHED_KEYS = ("round_id", "seed", "skill_free_probability", "chunks", "source")
MAPPING_NAME = "clipped_linear_positive_contribution"
DEFAULT_SEED = 20260901
HELD = "held"  # the gate keeps such a chunk for more evidence, at the smallest inclusion


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


def build_curriculum(
    bank: SkillBank,
    *,
    round_id: str,
    skill_free_probability: float,
    rho_min: float,
    rho_max: float,
    contribution_scale: float | None = None,
    seed: int = DEFAULT_SEED,
    schema: Schema = "v2",
    source_path: str | None = None,
    expected_chunks: float | None = None,
    q_controller: Mapping[str, Any] | None = None,
) -> Curriculum:
    """The curriculum of a bank. Raises InputError when a value or an effect is out of its range.

    ``source_path`` is required by v1, which hashes it, and a mere note in v2. With
    ``expected_chunks`` the scale is chosen by ``curriculum_budget``; ``q_controller`` records where
    an adaptive q comes from. v1 knows neither.
    """
    if schema == "v1" and (expected_chunks is not None or q_controller is not None):
        raise InputError(
            "v1 has a fixed q and no budget", field="schema", value=schema, remedy="Use v2"
        )
    q = probability(Node(skill_free_probability, None, "skill_free_probability"))
    low = probability(Node(rho_min, None, "rho_min"))
    high = probability(Node(rho_max, None, "rho_max"))
    if low > high:
        raise InputError("must not exceed rho_max", field="rho_min", value=(low, high))
    effects = [estimated_effect(chunk, schema) for chunk in bank.chunks]
    active = [e for e, c in zip(effects, bank.chunks, strict=True) if not is_held(c)]
    if expected_chunks is not None:
        budget = Node(expected_chunks, None, "expected_chunks")
        if budget.number() <= 0 or contribution_scale is not None:
            raise budget.error("must be above 0, and stands in the place of contribution_scale")
        scale = scale_for(
            active, held=len(effects) - len(active), expected=expected_chunks,
            rho_min=low, rho_max=high,
        )  # fmt: skip
        scale_source = "expected_chunks"
    elif contribution_scale is None:
        scale, scale_source = max(active, default=1.0), "largest_active_contribution"
    else:
        scale, scale_source = contribution_scale, "explicit"
    if not math.isfinite(scale) or scale <= 0:
        raise InputError("must be finite and above 0", field="contribution_scale", value=scale)
    source: dict[str, Any] = {
        "skillbank_sha256": bank.bank_sha256,
        "probability_mapping": {
            "name": MAPPING_NAME,
            "rho_min": low,
            "rho_max": high,
            "contribution_scale": scale,
            "scale_source": scale_source,
            **({} if expected_chunks is None else {"expected_chunks": expected_chunks}),
        },
        **({} if q_controller is None else {"q_controller": dict(q_controller)}),
    }
    if schema == "v1":
        if not source_path:
            raise InputError(
                "v1 hashes the path of the bank", field="source_path", remedy="name it, or use v2"
            )
        source = {"skillbank_path": source_path, **source}
    document: dict[str, Any] = {
        "schema_version": SCHEMAS[schema],
        "created_at": utc_now(),
        "round_id": round_id,
        "seed": seed,
        "skill_free_probability": q,
        "chunks": [
            {
                "skill_id": chunk.skill_id,
                "version": chunk.version,
                "content": chunk.content,
                "metadata": dict(chunk.metadata),
                "contribution": effect,
                "inclusion_probability": low if is_held(chunk) else rho(effect, scale, low, high),
            }
            for chunk, effect in zip(bank.chunks, effects, strict=True)
        ],
        "source": source,
    }
    if schema == "v2" and source_path:
        document["notes"] = {"skillbank_path": source_path}
    document["state_id"] = state_id(document)
    return parse_curriculum(document)


def rho(effect: float, scale: float, rho_min: float, rho_max: float) -> float:
    """The inclusion probability of an effect. Multiply before divide: the published bits."""
    return min(rho_max, max(rho_min, rho_min + (rho_max - rho_min) * effect / scale))


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


def is_held(chunk: Chunk) -> bool:
    """Whether the gate holds the chunk: neither proven useful nor retired."""
    return chunk.metadata.get("validation_result") == HELD


def estimated_effect(chunk: Chunk, schema: Schema = "v2") -> float:
    """The effect the gate stored with a chunk; above 0 unless v2 is told that the chunk is held."""
    stored = Node(
        chunk.metadata.get("estimated_effect"), None, f"{chunk.skill_id}.metadata.estimated_effect"
    )
    effect = stored.number()
    if effect <= 0 and not (schema == "v2" and is_held(chunk)):
        raise stored.error(
            "an active chunk needs a positive effect",
            "remove the chunk from the bank; a curriculum never re-admits it",
        )
    return effect


def probability(value: Node) -> float:
    """``value`` as a float between 0 and 1."""
    result = value.number()
    if not 0.0 <= result <= 1.0:
        raise value.error("must lie between 0 and 1")
    return result
