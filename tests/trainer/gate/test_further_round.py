"""A round that is not published: the specification written down a second time, by other means."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trainer.gate.test_published_rounds import val_ids
from trainer.cli.main import main
from trainer.files import read_json, write_json
from trainer.gate.assignment import design_matrix, draw_assignments
from trainer.gate.slots import Intervention, Layout, Slot
from trainer.skills.types import Chunk

Json = dict[str, Any]
SEED, MASK_SEED = 20260830, 20260901


def sha(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def simulated_pool(published: Path) -> Json:
    """Round 3 as it may have been: the bank that round 2 selected, two rewrites, two additions."""
    bank = read_json(published / "artifacts/round-002/gate/selected_skillbank.json")
    current = [
        {key: skill[key] for key in ("skill_id", "version", "content", "metadata")}
        for skill in bank["skills"]
        if skill.get("enabled", True)
    ]

    def candidate(operation: str, target: str | None, content: str) -> Json:
        signature = sha({"operation": operation, "target_chunk_id": target, "content": content})
        return {
            "candidate_id": f"online-{signature[:16]}",
            "operation": operation,
            "target_chunk_id": target,
            "content": content,
            "metadata": {
                "title": content,
                "failure_mechanism": "机制",
                "evidence_card_ids": ["failure-1"],
                "consolidation_cluster_id": f"cluster-{signature[:16]}",
                "proposal_checkpoint": "iter80",
            },
        }

    first, second = current[0]["skill_id"], current[3]["skill_id"]
    pool = {
        "schema_version": "shopsimrl-skill-candidate-pool-v1",
        "round_id": "round-003",
        "proposal_checkpoint": "iter80",
        "current_skillbank_sha256": sha(bank),
        "current_skills": current,
        "candidates": [
            candidate("ADD", None, "### 新增 一\n\n- Verify: “引号” & <尖括号>"),
            candidate("REWRITE", second, "改写 乙"),
            candidate("REWRITE", first, "改写 甲"),
            candidate("REWRITE", first, "改写 丙"),
            candidate("ADD", None, "新增 二 \u2028 é"),
        ],
    }
    return {**pool, "created_at": "2026-09-09T00:00:00.000000+00:00", "pool_sha256": sha(pool)}


def assignment_by_the_book(pool: Json, tasks: list[int]) -> Json:
    """gate-analysis.md §§2, 3, as literally as possible."""
    slots: list[Json] = []
    for chunk in pool["current_skills"]:
        rewrites = [
            c["candidate_id"]
            for c in pool["candidates"]
            if c["operation"] == "REWRITE" and c["target_chunk_id"] == chunk["skill_id"]
        ]
        name = chunk["skill_id"]
        slots.append(
            {"slot_id": name, "old_version_id": name, "versions": [name, *sorted(rewrites)]}
        )
    for name in sorted(c["candidate_id"] for c in pool["candidates"] if c["operation"] == "ADD"):
        slots.append({"slot_id": name, "old_version_id": None, "versions": [name]})
    columns = [version for slot in slots for version in slot["versions"]]
    rows = []
    for task in tasks:
        states: Json = {}
        for slot in slots:
            text = f"{MASK_SEED}:val:{task}:0:{slot['slot_id']}".encode()
            draw = int(hashlib.sha256(text).hexdigest()[:16], 16)
            k = draw % (len(slot["versions"]) + 1)
            states[slot["slot_id"]] = None if k == 0 else slot["versions"][k - 1]
        shown = [version for version in states.values() if version is not None]
        seed = int(hashlib.sha256(f"{SEED}:{task}:0".encode("ascii")).hexdigest()[:8], 16)
        rows.append(
            {
                "episode_id": f"task-{task:06d}__sample-000",
                "task_id": task,
                "sample_id": 0,
                "seed": seed,
                "split": "val",
                "mask": [int(column in shown) for column in columns],
                "included_chunk_ids": shown,
                "slot_states": states,
            }
        )
    return {
        "mask_seed": MASK_SEED,
        "pool_sha256": pool["pool_sha256"],
        "columns": columns,
        "slots": slots,
        "assignments": rows,
    }


def test_a_further_round_gets_the_hash_of_the_specification(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = simulated_pool(published)
    expected = assignment_by_the_book(pool, val_ids(published))
    write_json(tmp_path / "pool.json", pool)
    splits = published / "ShopSimulator/shop_env/configs/persona_splits.v1.json"
    command = f"gate plan --pool {tmp_path / 'pool.json'} --split-file {splits} --split val"
    command += f" --experiment-seed {SEED} --mask-seed {MASK_SEED} --profile published --json"
    assert main(command.split()) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["pool_sha256"] == pool["pool_sha256"]
    assert plan["columns"] == expected["columns"]
    assert plan["slots"] == expected["slots"]
    assert plan["assignment_sha256"] == sha(expected)
    assert set(plan["expected_se"]) == set(expected["columns"])


def test_the_design_of_the_last_published_round_has_the_published_properties(
    published: Path,
) -> None:
    """Its pool is not published, but its columns are, and masks depend on nothing else."""
    with (published / "artifacts/analysis/chunk_contributions.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["round"] == "3"]
    if not rows:
        pytest.skip("the table holds no fourth gate")
    slots: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        slots.setdefault(row["logical_chunk_id"], []).append(row)
    layout = Layout(
        tuple(
            Slot(
                slot_id,
                slot_id if members[0]["kind"] == "current" else None,
                tuple(row["intervention_id"] for row in members),
            )
            for slot_id, members in slots.items()
        ),
        {
            row["intervention_id"]: Intervention(
                "current", None, row["logical_chunk_id"], 1, Chunk(row["intervention_id"], "x")
            )
            for row in rows
        },
    )
    drawn = draw_assignments(
        layout,
        task_ids=val_ids(published),
        split="val",
        experiment_seed=SEED,
        mask_seed=MASK_SEED,
    )
    X = design_matrix(drawn, layout.columns)
    assert X.shape == (400, 12)
    assert np.linalg.cond(X) == pytest.approx(5.26, abs=0.005)
    assert X.sum(axis=1).mean() == pytest.approx(5.41, abs=0.005)
    assert (X.sum(axis=0).min(), X.sum(axis=0).max()) == (119, 210)
