from __future__ import annotations

import numpy as np
import pytest

from tests.trainer.gate.builders import pool_of
from trainer.gate.assignment import Assignment, assignment_document, design_matrix, draw_assignments
from trainer.gate.slots import Layout, build_layout
from trainer.gate.standard.design import SCHEMA, balanced_signs, deal, seeded


def deal_of(
    layout: Layout, n: int, round_id: str = "round-000", mask_seed: int = 3
) -> tuple[Assignment, ...]:
    return deal(
        layout,
        task_ids=range(500, 500 + n),
        split="val",
        experiment_seed=1,
        mask_seed=mask_seed,
        round_id=round_id,
    )


def signs_of(layout: Layout, rows: tuple[Assignment, ...]) -> np.ndarray:
    masks = design_matrix(rows, layout.columns)
    return masks[::2] - masks[1::2]


@pytest.mark.parametrize("k", [1, 2, 3, 7, 8, 13])
def test_signs_are_orthogonal_over_whole_blocks(k: int) -> None:
    order = 1 << (k - 1).bit_length()
    signs = balanced_signs(5 * max(order, 2), k, seeded("x"))
    assert (signs.T @ signs == len(signs) * np.eye(k)).all()


def test_what_one_rollout_shows_the_other_hides() -> None:
    layout = build_layout(pool_of(list("abcde"), None, ["x", "y"]))
    masks = design_matrix(deal_of(layout, 96), layout.columns)
    assert (masks[::2] + masks[1::2] == 1).all()
    assert (
        signs_of(layout, deal_of(layout, 96)).T @ signs_of(layout, deal_of(layout, 96))
        == 96 * np.eye(7)
    ).all()


def test_a_family_rotates_through_all_pairs_of_states_equally_often() -> None:
    layout = build_layout(pool_of(["a", "b"], {"a": ["new a"]}))
    rows = deal_of(layout, 120)
    states = [row.slot_states["a"] for row in rows]
    pairs = list(zip(states[::2], states[1::2], strict=True))
    assert all(first != second for first, second in pairs)
    unordered = [frozenset(pair) for pair in pairs]
    assert {unordered.count(pair) for pair in set(unordered)} == {40}
    signs = signs_of(layout, rows)
    assert np.abs(signs[:, :2].T @ signs[:, 2]).max() <= 12


def test_the_same_inputs_deal_the_same_and_the_round_deals_anew() -> None:
    layout = build_layout(pool_of(list("abc"), {"a": ["new a"]}, ["x"]))
    first, again = deal_of(layout, 60), deal_of(layout, 60)
    assert first == again
    later = deal_of(layout, 60, "round-001")
    same = np.mean(
        [a.slot_states["b"] == b.slot_states["b"] for a, b in zip(first, later, strict=True)]
    )
    assert 0.3 < same < 0.7
    assert deal_of(layout, 60, mask_seed=4) != first


def test_published_masks_repeat_in_every_round_which_is_why_the_round_is_hashed() -> None:
    layout = build_layout(pool_of(list("abc")))
    settings = {"task_ids": range(60), "split": "val", "experiment_seed": 1, "mask_seed": 3}
    assert draw_assignments(layout, **settings) == draw_assignments(layout, **settings)  # type: ignore[arg-type]


def test_the_order_of_chunks_is_random_and_recorded() -> None:
    layout = build_layout(pool_of(list("abcdef")))
    rows = deal_of(layout, 200)
    places = [
        row.included.index("a") / max(1, len(row.included) - 1)
        for row in rows
        if "a" in row.included
    ]
    assert 0.4 < float(np.mean(places)) < 0.6
    document = assignment_document(
        layout, rows, mask_seed=3, pool_sha256="0", schema=SCHEMA, extra={"round_id": "round-000"}
    )
    assert document["assignments"][0]["included_chunk_ids"] == list(rows[0].included)


def test_a_decided_slot_is_not_randomised() -> None:
    layout = build_layout(pool_of(list("abc")))
    rows = deal(
        layout,
        task_ids=range(40),
        split="val",
        experiment_seed=1,
        mask_seed=3,
        round_id="round-000",
        look=1,
        fixed={"a": "a", "b": None},
    )
    assert {row.slot_states["a"] for row in rows} == {"a"}
    assert {row.slot_states["b"] for row in rows} == {None}
    assert len({row.slot_states["c"] for row in rows}) == 2


def test_balanced_rows_are_more_precise_than_coin_flips() -> None:
    layout = build_layout(pool_of([f"c{i:02d}" for i in range(14)]))
    rng = np.random.default_rng(0)

    def worst(signs: np.ndarray) -> float:
        return float(np.diagonal(np.linalg.inv(signs.T @ signs)).max() * len(signs))

    coins = np.mean([worst(rng.choice([-1.0, 1.0], (200, 14))) for _ in range(20)])
    assert worst(signs_of(layout, deal_of(layout, 200))) < 1.01
    assert coins > 1.05
