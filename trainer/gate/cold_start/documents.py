"""What a cold-start gate writes down: contributions by chunk, the first bank, control banks.

Specification: gate-analysis.md §10.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from trainer.canonical import utc_now
from trainer.gate.cold_start.design import MASK_PROBABILITY
from trainer.gate.cold_start.draft import Draft
from trainer.gate.judgement import Json
from trainer.gate.published import judge as published
from trainer.gate.selection import Selection, select
from trainer.skills.bank import bank_document
from trainer.skills.types import Chunk

CONTRIBUTIONS_SCHEMA = "shopsimrl-chunk-contributions-v2"
MANIFEST_SCHEMA = "shopsimrl-trace2skill-gate-a-v2"
BANK_VERSION = "cold-start-gate-a-selected-v2"
ACTIVE_VERSION = "active-1"
CSV_COLUMNS = ("chunk_id", "draft_order", "title", "coefficient", "rank", "status")
SELECTION = "strictly_positive_top_k"
ESTIMATOR: Json = {
    **{k: v for k, v in published.ESTIMATOR.items() if k != "rewrite_rule"},
    "selection_rule": SELECTION,
}
PROTOCOL: Json = {
    "masked_rollouts_per_task": 1,
    "reused_bare_rollouts_per_task": 1,
    "masking": "independent_chunk_coin",
    "mask_probability": MASK_PROBABILITY,
    "estimator": ESTIMATOR["name"],
    "formula": ESTIMATOR["formula"],
    "selection": SELECTION,
}


def contributions_document(
    draft: Draft,
    selection: Selection,
    judged: Json,
    *,
    assignment_sha256: str,
) -> dict[str, Any]:
    """``contributions.json``: the estimates of a published gate, with a row a chunk.

    ``judged`` is the document of the published profile for the same observations.
    """
    rows = {row["intervention_id"]: row for row in judged["contributions"]}
    return {
        "schema_version": CONTRIBUTIONS_SCHEMA,
        "created_at": utc_now(),
        "estimator": dict(ESTIMATOR),
        "draft_sha256": draft.draft_sha256,
        "assignment_sha256": assignment_sha256,
        **{
            key: judged[key]
            for key in ("observations", "requested_observations", "dropped_episode_ids")
        },
        "active_skill_budget": draft.budget,
        "selected_chunk_ids": list(selection.selected),
        "selected_count": len(selection.selected),
        "estimates": judged["estimates"],
        "contributions": [
            row | {"auxiliary_coefficients": rows[row["chunk_id"]]["auxiliary_coefficients"]}
            for row in contribution_rows(draft, selection)
        ],
        "observations_table": judged["observations_table"],
        "bare_baseline": judged["bare_baseline"],
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


def active_bank(
    draft: Draft, selection: Selection, *, found: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The first active bank: the selected chunks, no longer drafts.

    ``found`` says in its metadata where the selection comes from.
    """
    chosen = [chunk for chunk in draft.chunks if chunk.skill_id in selection.selected]
    return bank_document(
        [_activated(chunk, selection) for chunk in chosen],
        bank_version=BANK_VERSION,
        metadata={
            "draft_sha256": draft.draft_sha256,
            "active_skill_budget": draft.budget,
            "selected_count": len(chosen),
            "selected_chunk_ids": list(selection.selected),
            **(found or {}),
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
