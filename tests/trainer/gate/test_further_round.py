"""A round that is not published: the specification written down a second time, by other means."""

from __future__ import annotations

import csv
import hashlib
import json
import random
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


def solved(X: list[list[float]], y: list[float]) -> list[float]:
    """Least squares by the normal equations (gate-analysis.md §6)."""
    k = range(len(X[0]))
    rows = [
        [sum(x[i] * x[j] for x in X) for j in k]
        + [sum(x[i] * each for x, each in zip(X, y, strict=True))]
        for i in k
    ]
    for i in k:
        pivot = max((r for r in k if r >= i), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for r in k:
            if r != i:
                rows[r] = [a - rows[r][i] * b for a, b in zip(rows[r], rows[i], strict=True)]
    return [row[-1] for row in rows]


def contributions_by_the_book(pool: Json, assignment: Json) -> Json:
    """gate-analysis.md §§5-8, with made-up outcomes."""
    luck = random.Random(3)
    parts = ("r_att", "r_loose", "r_option", "r_price", "r_strict", "r_success", "r_type")
    table = []
    for row in assignment["assignments"]:
        detail = {part: luck.random() for part in parts}
        bare = {part: luck.random() for part in parts}
        delta = {part: detail[part] - bare[part] for part in parts}
        kept = ("episode_id", "split", "task_id", "sample_id", "mask", "included_chunk_ids")
        table.append(
            {key: row[key] for key in kept}
            | {"reward": detail["r_strict"], "bare_reward": bare["r_strict"]}
            | {"delta_reward": delta["r_strict"], "reward_detail": detail}
            | {"bare_reward_detail": bare, "delta_reward_detail": delta}
        )
    masks = [row["mask"] for row in table]
    columns = assignment["columns"]
    fitted = {
        part: dict(
            zip(
                columns, solved(masks, [r["delta_reward_detail"][part] for r in table]), strict=True
            )
        )
        for part in parts
    }
    beta = fitted["r_strict"]
    winners = {
        slot["slot_id"]: max(slot["versions"], key=lambda v: beta[v])
        for slot in assignment["slots"]
    }
    ranked = sorted(winners.values(), key=lambda v: (-beta[v], v))
    kept_versions = [v for v in ranked if beta[v] > 0][:10]
    rows = []
    for order, slot in enumerate(assignment["slots"], 1):
        for version in slot["versions"]:
            current = version == slot["old_version_id"]
            if version not in ranked:
                status = "rewrite_loser"
            elif version in kept_versions:
                status = "selected"
            elif current:
                status = "retired"
            else:
                status = "budget_excluded" if beta[version] > 0 else "non_positive"
            added = None if current else "REWRITE" if slot["old_version_id"] else "ADD"
            rows.append(
                {
                    "intervention_id": version,
                    "kind": "current" if current else "candidate",
                    "logical_chunk_id": slot["slot_id"],
                    "operation": added,
                    "order": order,
                    "coefficient": beta[version],
                    "rank": ranked.index(version) + 1 if version in ranked else None,
                    "status": status,
                    "auxiliary_coefficients": {part: fitted[part][version] for part in parts},
                }
            )
    return {
        "schema_version": "shopsimrl-online-chunk-contributions-v2",
        "created_at": "2026-09-09T00:00:00.000000+00:00",
        "pool_sha256": pool["pool_sha256"],
        "observations": len(table),
        "active_skill_budget": 10,
        "contributions": rows,
        "observations_table": table,
    }


def test_a_further_gate_in_the_published_layout_is_fitted_as_it_was(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = simulated_pool(published)
    made = contributions_by_the_book(pool, assignment_by_the_book(pool, val_ids(published)))
    text = json.dumps(made, ensure_ascii=False, indent=2).replace("\n", "\r\n")
    (tmp_path / "contributions.json").write_bytes(text.encode())
    manifest = {"status": "complete", "output": {"contributions_sha256": sha(made)}}
    write_json(tmp_path / "online_gate_manifest.json", manifest)
    assert main(["gate", "fit", str(tmp_path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["largest_difference"] < 1e-12
    for found, row in zip(report["contributions"], made["contributions"], strict=True):
        parts = row.pop("auxiliary_coefficients")
        assert found["auxiliary_coefficients"] == pytest.approx(parts, abs=1e-12)
        assert found["coefficient"] == pytest.approx(row.pop("coefficient"), abs=1e-12)
        assert {key: found[key] for key in row} == row
    made["contributions"][0]["status"] = "held"
    write_json(tmp_path / "contributions.json", made)
    assert main(["gate", "fit", str(tmp_path)]) == 2
    assert "does not match contributions.json beside it" in capsys.readouterr().err


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
