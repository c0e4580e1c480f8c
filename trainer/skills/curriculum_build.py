"""From a bank to a curriculum: each chunk's effect, as the gate stored it, sets its rho.

v2 knows two things that v1 does not: chunks that the gate holds, shown as seldom as any, and a
budget of chunks. Specification: training.md §2; docs/design/gate.md for what is held.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from trainer.canonical import utc_now
from trainer.errors import InputError
from trainer.reading import Node
from trainer.skills.bank import SkillBank
from trainer.skills.curriculum import (
    SCHEMAS,
    Curriculum,
    Schema,
    parse_curriculum,
    probability,
    state_id,
)
from trainer.skills.curriculum_budget import scale_for
from trainer.skills.types import Chunk

DEFAULT_SEED = 20260901  # of masks
MAPPING_NAME = "clipped_linear_positive_contribution"
HELD = "held"  # the gate keeps such a chunk for more evidence, at the smallest inclusion


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
    scale, chosen_by = _scale(
        active,
        held=len(effects) - len(active),
        rho_min=low,
        rho_max=high,
        given=contribution_scale,
        expected_chunks=expected_chunks,
    )
    source: dict[str, Any] = {
        "skillbank_sha256": bank.bank_sha256,
        "probability_mapping": {
            "name": MAPPING_NAME,
            "rho_min": low,
            "rho_max": high,
            "contribution_scale": scale,
            "scale_source": chosen_by,
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


def _scale(
    active: Sequence[float],
    *,
    held: int,
    rho_min: float,
    rho_max: float,
    given: float | None,
    expected_chunks: float | None,
) -> tuple[float, str]:
    """The effect from which on a chunk has rho_max, and what it was chosen by."""
    if expected_chunks is not None:
        budget = Node(expected_chunks, None, "expected_chunks")
        if budget.number() <= 0 or given is not None:
            raise budget.error("must be above 0, and stands in the place of contribution_scale")
        scale = scale_for(
            active, held=held, expected=expected_chunks, rho_min=rho_min, rho_max=rho_max
        )
        chosen_by = "expected_chunks"
    elif given is None:
        scale, chosen_by = max(active, default=1.0), "largest_active_contribution"
    else:
        scale, chosen_by = given, "explicit"
    if not math.isfinite(scale) or scale <= 0:
        raise InputError("must be finite and above 0", field="contribution_scale", value=scale)
    return scale, chosen_by


def next_published(before: Curriculum, bank: SkillBank, *, number: int) -> Curriculum:
    """The v1 curriculum of round ``number``, whose file is absent, from that of the round before.

    v1 hashes the label of the bank's path: the previous one, with the round counted on.
    """
    source = before.document["source"]
    mapping = source["probability_mapping"]
    return build_curriculum(
        bank,
        round_id=f"round-{number:03d}",
        skill_free_probability=before.skill_free_probability,
        rho_min=mapping["rho_min"],
        rho_max=mapping["rho_max"],
        seed=before.seed,
        schema="v1",
        source_path=source["skillbank_path"].replace(
            f"round-{number - 2:03d}", f"round-{number - 1:03d}"
        ),
    )


def rho(effect: float, scale: float, rho_min: float, rho_max: float) -> float:
    """The inclusion probability of an effect. Multiply before divide: the published bits."""
    return min(rho_max, max(rho_min, rho_min + (rho_max - rho_min) * effect / scale))


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
