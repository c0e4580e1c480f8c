"""The cold-start gate ("Gate A"): the first selection, from a draft instead of an active skill.

A draft has up to 16 chunks and no current version of anything, so every chunk is its own slot and
each is shown with probability one half. It differs from the round's gate in the draw (a fair bit of
the same kind of hash, not a modulus), in its schemas, and in that nothing can be retired.
Observing, pairing and fitting are the same (``pairing``, ``regression``). Specification:
gate-analysis.md §10.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from trainer.canonical import episode_seed, fingerprint, utc_now
from trainer.errors import InputError
from trainer.gate.assignment import Assignment
from trainer.gate.selection import Selection, select
from trainer.gate.slots import Intervention, Layout, Slot
from trainer.reading import Node
from trainer.skills.bank import bank_document, parse_bank
from trainer.skills.types import Chunk

ASSIGNMENTS_SCHEMA = "shopsimrl-chunk-mask-assignments-v1"
CONTRIBUTIONS_SCHEMA = "shopsimrl-chunk-contributions-v2"
BANK_VERSION = "cold-start-gate-a-selected-v2"
ACTIVE_VERSION = "active-1"
MASK_PROBABILITY = 0.5
MAX_CHUNKS = 16
CSV_COLUMNS = ("chunk_id", "draft_order", "title", "coefficient", "rank", "status")

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Draft:
    """A drafted skill: its chunks in order, how many may become active, and its hash."""

    chunks: tuple[Chunk, ...]
    budget: int
    draft_sha256: str

    @property
    def layout(self) -> Layout:
        """One slot a chunk; all of them are additions."""
        return Layout(
            tuple(Slot(chunk.skill_id, None, (chunk.skill_id,)) for chunk in self.chunks),
            {
                chunk.skill_id: Intervention("candidate", "ADD", chunk.skill_id, order, chunk)
                for order, chunk in enumerate(self.chunks, 1)
            },
        )


def parse_draft(document: Json, *, budget: int | None = None) -> Draft:
    """A draft bank: 1 to 16 records, all ``draft_only``, and a budget.

    Raises InputError when a rule is broken or ``budget`` contradicts the bank's.
    """
    bank = parse_bank(document)
    if not 1 <= len(bank.chunks) <= MAX_CHUNKS:
        raise InputError(
            f"a draft has 1 to {MAX_CHUNKS} chunks", field="skills", value=len(bank.chunks)
        )
    active = [
        chunk.skill_id for chunk in bank.chunks if chunk.metadata.get("draft_only") is not True
    ]
    if active:
        raise InputError("a draft holds only draft records", field="skills", value=active)
    stated = bank.metadata.get("active_skill_budget")
    budgets = [each for each in (stated, budget) if each is not None]
    if len(budgets) == 2 and stated == budget:
        budgets = [stated]
    if len(budgets) != 1:
        raise InputError(
            "one budget is needed, and both places must agree",
            field="active_skill_budget",
            value=(stated, budget),
        )
    (agreed,) = budgets
    agreed = Node(agreed, None, "metadata.active_skill_budget").integer()
    if not 1 <= agreed <= len(bank.chunks):
        raise InputError(
            "must lie between 1 and the chunks", field="active_skill_budget", value=agreed
        )
    return Draft(bank.chunks, int(agreed), fingerprint(document))


def draw_bit(mask_seed: int, key: tuple[str, int, int], chunk_id: str) -> bool:
    """Whether a rollout shows a chunk: the top bit of the draw is 0."""
    split, task_id, sample_id = key
    text = f"{mask_seed}:{split}:{task_id}:{sample_id}:{chunk_id}"
    draw = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return draw < MASK_PROBABILITY * 2**64


def draw_assignments(
    draft: Draft, *, task_ids: Sequence[int], split: str, experiment_seed: int, mask_seed: int
) -> tuple[Assignment, ...]:
    """One masked rollout (sample 0) for every task."""
    rows = []
    for task_id in task_ids:
        key = (split, task_id, 0)
        shown = {c.skill_id: draw_bit(mask_seed, key, c.skill_id) for c in draft.chunks}
        rows.append(
            Assignment(
                task_id=task_id,
                sample_id=0,
                seed=episode_seed(experiment_seed, task_id, 0),
                split=split,
                slot_states={name: name if bit else None for name, bit in shown.items()},
                included=tuple(name for name, bit in shown.items() if bit),
            )
        )
    return tuple(rows)


def assignment_document(
    draft: Draft, rows: Sequence[Assignment], *, mask_seed: int
) -> dict[str, Any]:
    """The assignment file with its hash."""
    ids = [chunk.skill_id for chunk in draft.chunks]
    records = [row.to_record(ids) for row in rows]
    hashed = {
        "mask_seed": mask_seed,
        "mask_probability": MASK_PROBABILITY,
        "draft_sha256": draft.draft_sha256,
        "chunk_ids": ids,
        "assignments": [{k: v for k, v in row.items() if k != "slot_states"} for row in records],
    }
    return {
        "schema_version": ASSIGNMENTS_SCHEMA,
        "created_at": utc_now(),
        **hashed,
        "assignment_sha256": fingerprint(hashed),
    }


def select_draft(draft: Draft, coefficients: Mapping[str, float]) -> Selection:
    """Strictly positive chunks, best first, at most the budget; in draft order."""
    return select(draft.layout, coefficients, draft.budget)


def contribution_rows(draft: Draft, selection: Selection) -> list[dict[str, Any]]:
    """A row a chunk: its place in the draft, its coefficient and what became of it."""
    return [
        {
            "chunk_id": chunk.skill_id,
            "draft_order": order,
            "title": chunk.metadata.get("title") or chunk.metadata.get("workflow_stage", ""),
            "coefficient": selection.verdicts[chunk.skill_id].coefficient,
            "rank": selection.verdicts[chunk.skill_id].rank,
            "status": selection.verdicts[chunk.skill_id].status,
        }
        for order, chunk in enumerate(draft.chunks, 1)
    ]


def contributions_csv(rows: Sequence[Json]) -> str:
    """``contributions.csv``."""
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def active_bank(draft: Draft, selection: Selection) -> dict[str, Any]:
    """The first active bank: the selected chunks, no longer drafts."""
    chosen = [chunk for chunk in draft.chunks if chunk.skill_id in selection.selected]
    return bank_document(
        [_activated(chunk, selection) for chunk in chosen],
        bank_version=BANK_VERSION,
        metadata={
            "draft_sha256": draft.draft_sha256,
            "active_skill_budget": draft.budget,
            "selected_count": len(chosen),
            "selected_chunk_ids": list(selection.selected),
        },
    )


def _activated(chunk: Chunk, selection: Selection) -> Chunk:
    verdict = selection.verdicts[chunk.skill_id]
    kept = {key: value for key, value in chunk.metadata.items() if key != "draft_only"}
    found = {
        "validation_result": "selected",
        "estimated_effect": verdict.coefficient,
        "contribution_rank": verdict.rank,
    }
    return Chunk(chunk.skill_id, chunk.content, ACTIVE_VERSION, {**kept, **found})


def control_bank(
    draft: Draft, coefficients: Mapping[str, float], sign: Literal["positive", "negative"]
) -> dict[str, Any]:
    """A control: all chunks whose cold-start coefficient has this sign, strictly."""
    factor = 1 if sign == "positive" else -1
    chosen = [chunk for chunk in draft.chunks if factor * coefficients[chunk.skill_id] > 0]
    version = f"gate-a-{sign}-control-1"
    return bank_document(
        [Chunk(c.skill_id, c.content, version, c.metadata) for c in chosen],
        bank_version=version,
        metadata={"coefficient_sign": sign, "selected_chunk_ids": [c.skill_id for c in chosen]},
    )
