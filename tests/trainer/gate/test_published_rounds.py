"""The three published gates, rebuilt from their pools and compared hash by hash."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trainer.canonical import fingerprint
from trainer.files import read_json
from trainer.gate.artefacts import selected_bank, skill_markdown
from trainer.gate.assignment import assignment_document, design_matrix, draw_assignments
from trainer.gate.ledger import append_proposals, attach_results, load_ledger
from trainer.gate.pool import CandidatePool, candidate_id, load_pool
from trainer.gate.published.judge import ESTIMATOR, PROTOCOL
from trainer.gate.selection import Selection, select
from trainer.gate.slots import Layout, build_layout

POOLS = (
    "692abcce70e1a0e4544cf899e6a5cf5baef63c1048dc1c0e7b859788ee97c54b",
    "a6b930a73f63472e8b2857c5201f7d3506f190f3f979aa0f9cd866e61d0ea6c6",
    "3a7ea9ae2650b10cfe62c255b22b0884934f3521cc3d8966d37981cf681bc35b",
)
ASSIGNMENTS = (
    "70bdd0d81a0ca873be3639f3afffebce615da781ca206f196523977955bbf71d",
    "bdd89685e3b8dc32ce83053f06ced513f911fb92212d800ac0291cea758a7c16",
    "b3e740e122374803eb7209002f0f268f89ae6a5b0f5099de01b826de11f7628f",
)
BANKS = (
    "38db2dc584c66e9afe7ce81efd00acb5e298589da98da995526058d705b380cf",
    "92deab21316a1384f66d8c7cd39fac9c723e7f7706913729b8a3e4cef7fdf1a8",
    "e85e947b1f6b6aae434da8f4a04405d41b6ee73cb91627afe7bd4e77213f811a",
)
ROUNDS = pytest.mark.parametrize("number", (0, 1, 2))


def gate_folder(published: Path, number: int) -> Path:
    return published / "artifacts" / f"round-{number:03d}" / "gate"


def pool_of_round(published: Path, number: int) -> CandidatePool:
    folder = published / "artifacts" / f"round-{number:03d}" / "analysis"
    return load_pool(folder / "candidate_pool.json")


def val_ids(published: Path) -> list[int]:
    splits = read_json(published / "ShopSimulator/shop_env/configs/persona_splits.v1.json")
    return list(splits["splits"]["val"]["task_ids"])


def published_rows(published: Path, number: int) -> list[dict[str, str]]:
    with (published / "artifacts/analysis/chunk_contributions.csv").open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["round"] == str(number)]


def published_selection(published: Path, number: int, layout: Layout) -> Selection:
    rows = published_rows(published, number)
    return select(layout, {r["intervention_id"]: float(r["coefficient"]) for r in rows}, 10)


@ROUNDS
def test_pools_have_their_published_hash_and_candidate_ids(published: Path, number: int) -> None:
    pool = pool_of_round(published, number)
    assert pool.pool_sha256 == POOLS[number]
    for candidate in pool.candidates:
        made = candidate_id(candidate.operation, candidate.target_chunk_id, candidate.content)
        assert candidate.candidate_id == made


@ROUNDS
def test_masks_have_their_published_hash(published: Path, number: int) -> None:
    pool = pool_of_round(published, number)
    layout = build_layout(pool)
    rows = draw_assignments(
        layout,
        task_ids=val_ids(published),
        split="val",
        experiment_seed=20260830,
        mask_seed=20260901,
    )
    document = assignment_document(layout, rows, mask_seed=20260901, pool_sha256=pool.pool_sha256)
    assert document["assignment_sha256"] == ASSIGNMENTS[number]
    X = design_matrix(rows, layout.columns)
    assert np.linalg.cond(X) == pytest.approx((6.25, 4.53, 5.01)[number], abs=0.005)
    assert X.sum(axis=1).mean() == pytest.approx((7.78, 4.77, 4.92)[number], abs=0.005)


@ROUNDS
def test_columns_orders_ranks_and_statuses_are_the_published_ones(
    published: Path, number: int
) -> None:
    layout = build_layout(pool_of_round(published, number))
    chosen = published_selection(published, number, layout)
    made = [
        {
            "round": str(number),
            "intervention_id": name,
            "kind": item.kind,
            "logical_chunk_id": item.logical_chunk_id,
            "operation": item.operation or "",
            "order": str(item.order),
            "coefficient": repr(chosen.verdicts[name].coefficient),
            "rank": str(chosen.verdicts[name].rank or ""),
            "status": chosen.verdicts[name].status,
        }
        for name, item in layout.interventions.items()
    ]
    stored = [
        {**r, "coefficient": repr(float(r["coefficient"]))}
        for r in published_rows(published, number)
    ]
    assert made == stored


@ROUNDS
def test_the_next_bank_and_its_text_are_the_published_ones(published: Path, number: int) -> None:
    folder = gate_folder(published, number)
    manifest: dict[str, Any] = read_json(folder / "online_gate_manifest.json")
    pool = pool_of_round(published, number)
    layout = build_layout(pool)
    bank = selected_bank(
        layout,
        published_selection(published, number, layout),
        pool,
        assignment_sha256=ASSIGNMENTS[number],
        budget=10,
        bare_baseline=manifest["input"]["bare_baseline"],
        estimator=ESTIMATOR,
    )
    assert fingerprint(bank) == BANKS[number] == manifest["output"]["selected_skillbank_sha256"]
    stored = read_json(folder / "selected_skillbank.json")
    assert [list(skill) for skill in bank["skills"]] == [list(s) for s in stored["skills"]]
    text = (folder / "selected_skill.md").read_bytes().decode()
    assert skill_markdown(bank) == text.replace("\r\n", "\n")
    assert manifest["protocol"] == {"split": "val", **PROTOCOL}
    assert stored["metadata"]["estimator"] == ESTIMATOR


@ROUNDS
def test_the_ledger_grows_as_published(published: Path, number: int) -> None:
    pool = pool_of_round(published, number)
    history = (
        []
        if number == 0
        else load_ledger(gate_folder(published, number - 1) / "proposal_ledger.jsonl")
    )
    before = append_proposals(history, pool)
    analysed = gate_folder(published, number).parent / "analysis" / "proposal_ledger.jsonl"
    assert before == load_ledger(analysed)
    manifest = read_json(gate_folder(published, number) / "online_gate_manifest.json")
    baseline = manifest["input"]["bare_baseline"]
    layout = build_layout(pool)
    after = attach_results(
        before,
        pool,
        published_selection(published, number, layout),
        evaluation_checkpoint=baseline["checkpoint_id"],
        estimator=manifest["protocol"]["estimator"],
        bare_observations_sha256=baseline["observations_sha256"],
        assignment_sha256=ASSIGNMENTS[number],
    )
    assert len(after) == (6, 12, 18)[number]
    assert fingerprint(after) == manifest["output"]["proposal_ledger_sha256"]
