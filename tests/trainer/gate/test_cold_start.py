from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trainer.errors import InputError
from trainer.files import read_json
from trainer.gate.assignment import design_matrix
from trainer.gate.cold_start import (
    Draft,
    active_bank,
    assignment_document,
    contribution_rows,
    contributions_csv,
    control_bank,
    draw_assignments,
    draw_bit,
    parse_draft,
    select_draft,
)
from trainer.gate.regression import least_squares
from trainer.skills.bank import parse_bank


def document(count: int = 4, budget: int | None = 2, **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {} if budget is None else {"active_skill_budget": budget},
        "skills": [
            {
                "skill_id": f"c{i}",
                "content": f"text {i}",
                "metadata": {"draft_only": True, "workflow_stage": f"stage {i}", **metadata},
            }
            for i in range(count)
        ],
    }


def draft() -> Draft:
    return parse_draft(document())


def test_the_published_draft_is_read(published: Path) -> None:
    read = parse_draft(read_json(published / "artifacts/cold-start/initial_skillbank.json"))
    assert (len(read.chunks), read.budget) == (16, 10)


def test_the_draw_is_the_top_bit_and_not_the_modulus() -> None:
    from trainer.gate.assignment import draw_state

    key = ("val", 7, 0)
    bits = [draw_bit(3, key, f"c{i}") for i in range(4000)]
    assert abs(np.mean(bits) - 0.5) < 0.03
    parities = [draw_state(3, key, f"c{i}", 2) == 1 for i in range(4000)]
    assert 0.45 < np.mean(np.array(bits) == np.array(parities)) < 0.55


def test_effects_are_recovered_selected_and_ranked() -> None:
    given = draft()
    rows = draw_assignments(given, task_ids=range(200), split="val", experiment_seed=1, mask_seed=2)
    X = design_matrix(rows, given.layout.columns)
    effects = np.array([0.2, -0.1, 0.3, 0.1])
    beta = least_squares(X, (X @ effects)[:, None]).beta[:, 0]
    assert beta == pytest.approx(effects, abs=1e-12)
    chosen = select_draft(given, dict(zip(given.layout.columns, beta.tolist(), strict=True)))
    made = contribution_rows(given, chosen)
    assert [row["status"] for row in made] == [
        "selected",
        "non_positive",
        "selected",
        "budget_excluded",
    ]
    assert [row["rank"] for row in made] == [2, 4, 1, 3]
    assert contributions_csv(made).splitlines()[0] == (
        "chunk_id,draft_order,title,coefficient,rank,status"
    )
    bank = parse_bank(active_bank(given, chosen))
    assert [chunk.skill_id for chunk in bank.chunks] == ["c0", "c2"]
    assert all("draft_only" not in chunk.metadata for chunk in bank.chunks)
    assert {chunk.version for chunk in bank.chunks} == {"active-1"}


def test_the_assignment_file_is_hashed_without_its_time() -> None:
    given = draft()
    rows = draw_assignments(given, task_ids=range(5), split="val", experiment_seed=1, mask_seed=2)
    first = assignment_document(given, rows, mask_seed=2)
    again = assignment_document(given, rows, mask_seed=2)
    assert first["assignment_sha256"] == again["assignment_sha256"]
    assert "slot_states" not in first["assignments"][0]


def test_control_banks_take_one_sign_strictly() -> None:
    effects = {"c0": 0.1, "c1": 0.0, "c2": -0.1, "c3": 0.2}
    positive, negative = (control_bank(draft(), effects, s) for s in ("positive", "negative"))
    assert positive["metadata"]["selected_chunk_ids"] == ["c0", "c3"]
    assert negative["metadata"]["selected_chunk_ids"] == ["c2"]


@pytest.mark.parametrize(
    ("value", "budget", "match"),
    [
        (document(0), None, "1 to 16"),
        (document(17), None, "1 to 16"),
        (document(draft_only=False), None, "draft records"),
        (document(budget=None), None, "one budget"),
        (document(budget=2), 3, "one budget"),
        (document(budget=5), None, "at most 4"),
    ],
)
def test_a_broken_draft_is_refused(value: dict[str, Any], budget: int | None, match: str) -> None:
    with pytest.raises(InputError, match=match):
        parse_draft(value, budget=budget)
