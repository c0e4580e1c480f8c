from __future__ import annotations

from typing import Any

import pytest

from tests.trainer.gate.builders import pool_json, pool_of
from trainer.errors import InputError
from trainer.gate.assignment import design_matrix, draw_assignments
from trainer.gate.pool import parse_pool, pool_hash
from trainer.gate.slots import build_layout


def resealed(document: dict[str, Any], **changes: Any) -> dict[str, Any]:
    changed = {**document, **changes}
    return {**changed, "pool_sha256": pool_hash(changed)}


def test_slots_are_current_chunks_with_their_rewrites_then_additions() -> None:
    pool = pool_of(["a", "b"], {"b": ["new b", "newer b"]}, ["extra", "more"])
    layout = build_layout(pool)
    rewrites = sorted(c.candidate_id for c in pool.candidates if c.operation == "REWRITE")
    additions = sorted(c.candidate_id for c in pool.candidates if c.operation == "ADD")
    assert [slot.slot_id for slot in layout.slots] == ["a", "b", *additions]
    assert layout.slots[1].versions == ("b", *rewrites)
    assert layout.columns == ("a", "b", *rewrites, *additions)
    assert [item.order for item in layout.interventions.values()] == [1, 2, 2, 2, 3, 4]
    rewrite = layout.interventions[rewrites[0]]
    assert (rewrite.logical_chunk_id, rewrite.chunk.version) == ("b", "candidate")
    assert rewrite.chunk.metadata == {"operation": "REWRITE", "target_chunk_id": "b"}


def test_versions_of_a_family_never_meet_and_have_equal_shares() -> None:
    layout = build_layout(pool_of(["a", "b"], {"b": ["new b"]}))
    rows = draw_assignments(
        layout, task_ids=range(6000), split="val", experiment_seed=1, mask_seed=2
    )
    X = design_matrix(rows, layout.columns)
    assert (X[:, 1] + X[:, 2]).max() == 1.0
    assert X.mean(axis=0) == pytest.approx([1 / 2, 1 / 3, 1 / 3], abs=0.02)
    assert [row.included for row in rows[:50]] == [
        tuple(v for v in row.slot_states.values() if v) for row in rows[:50]
    ]


def test_the_time_is_not_part_of_a_pool() -> None:
    document = pool_json()
    assert parse_pool({**document, "created_at": "x"}).pool_sha256 == document["pool_sha256"]


def test_a_changed_pool_is_refused() -> None:
    with pytest.raises(InputError, match="pool_sha256"):
        parse_pool({**pool_json(), "round_id": "round-001"})


@pytest.mark.parametrize(
    ("candidate", "field"),
    [
        ({"operation": "DELETE"}, "candidates[0].operation"),
        ({"operation": "ADD", "target_chunk_id": "a"}, "candidates[0].target_chunk_id"),
        ({"operation": "REWRITE", "target_chunk_id": "z"}, "candidates[0].target_chunk_id"),
        ({"operation": "ADD", "content": " "}, "candidates[0].content"),
        ({"operation": "ADD", "candidate_id": "a"}, "candidates and current_skills"),
    ],
)
def test_a_candidate_that_breaks_a_rule_is_refused(candidate: dict[str, Any], field: str) -> None:
    base = {"candidate_id": "x", "target_chunk_id": None, "content": "text", "metadata": {}}
    document = resealed(pool_json(), candidates=[{**base, **candidate}])
    with pytest.raises(InputError) as caught:
        parse_pool(document)
    assert caught.value.field == field


def test_an_empty_target_of_an_addition_is_no_target() -> None:
    item = {"candidate_id": "x", "operation": "ADD", "target_chunk_id": "", "content": "t"}
    assert (
        parse_pool(resealed(pool_json(), candidates=[item])).candidates[0].target_chunk_id is None
    )


def test_ids_are_unique() -> None:
    document = pool_json()
    twice = document["current_skills"] + document["current_skills"][:1]
    with pytest.raises(InputError, match="unique"):
        parse_pool(resealed(document, current_skills=twice))
