from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trainer.gate.builders import bare_run, masked_run, plan_of, pool_of
from trainer.cli.main import main
from trainer.errors import InputError
from trainer.files import read_json, write_json
from trainer.gate.assignment import draw_assignments
from trainer.gate.evaluations import load_run
from trainer.gate.pairing import load_baseline, pair
from trainer.gate.planner import DETECTABLE, imagined_layout, judged_candidates, power_report
from trainer.gate.published.judge import judge
from trainer.gate.refit import difference_sd, load_finished, refit
from trainer.gate.slots import build_layout
from trainer.gate.standard.settings import StandardSettings

N = 300


@pytest.fixture(scope="module")
def published_gate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published gate with planted effects: a +0.3, b 0, a rewrite of b +0.3, an addition -0.3."""
    folder = tmp_path_factory.mktemp("gate")
    layout = build_layout(pool_of(["a", "b"], {"b": ["new b"]}, ["bad"]))
    effect = dict(zip(layout.columns, (0.3, 0.0, 0.3, -0.3), strict=True))
    rng = np.random.default_rng(5)
    level = rng.integers(0, 2, N) * 0.4 + 0.3
    tasks = list(range(N))
    rows = draw_assignments(
        layout, task_ids=tasks, split="val", experiment_seed=20260830, mask_seed=4
    )
    noise = iter(0.1 * rng.normal(size=2 * N))
    bare_run(folder / "bare", tasks, lambda task: float(level[task] + next(noise)))
    masked_run(
        folder / "gate",
        rows,
        lambda row: float(level[row.task_id] + sum(effect[v] for v in row.included) + next(noise)),
    )
    baseline = load_baseline(folder / "bare", plan_of(tasks))
    observations, dropped = pair(rows, load_run(folder / "gate"), baseline)
    judgement = judge(
        layout,
        observations,
        dropped=dropped,
        budget=10,
        pool_sha256="0",
        assignment_sha256="0",
        bare_baseline=baseline.record,
    )
    write_json(folder / "gate" / "contributions.json", judgement.contributions)
    return folder / "gate"


def by_id(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["intervention_id"]: row for row in report["contributions"]}


def test_a_gate_refitted_by_its_own_rules_comes_out_as_it_was(published_gate: Path) -> None:
    report = refit(load_finished(published_gate))
    assert report["largest_difference"] <= 1e-12
    stored = read_json(published_gate / "contributions.json")
    assert report["selected_intervention_ids"] == stored["selected_intervention_ids"]
    for row in stored["contributions"]:
        made = by_id(report)[row["intervention_id"]]
        assert {key: made[key] for key in row} == row


def test_the_standard_rules_judge_a_published_gate_by_covariance_analysis(
    published_gate: Path,
) -> None:
    gate = load_finished(published_gate)
    own, standard = by_id(refit(gate)), by_id(refit(gate, profile="standard"))
    for name, row in standard.items():
        assert row["coefficient"] == pytest.approx(own[name]["coefficient"], abs=3 * row["se"])
    assert standard["a"]["decision"] == "keep"
    assert [row["status"] for row in standard.values()] == [
        "selected",
        "rewrite_loser",
        "selected",
        "not_adopted",
    ]
    assert standard["a"]["coefficient"] == pytest.approx(0.3, abs=0.05)


def test_budget_and_thresholds_can_be_changed(published_gate: Path) -> None:
    gate = load_finished(published_gate)
    assert len(refit(gate, budget=1)["selected_intervention_ids"]) == 1
    strict = StandardSettings(
        keep_confidence=1 - 1e-12, retire_margin=0.001, equivalence_margin=0.001
    )
    assert len(refit(gate, profile="standard", settings=strict)["selected_intervention_ids"]) == 2


def test_commands_refit_without_touching_the_gate(
    published_gate: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {file: file.read_bytes() for file in published_gate.iterdir()}
    assert main(["gate", "fit", str(published_gate), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "complete"
    out = tmp_path / "report.json"
    command = ["gate", "refit", str(published_gate), "--profile", "standard", "--json"]
    assert main([*command, "--set", "retire_margin=0.01", "--out", str(out)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["settings"]["retire_margin"] == 0.01
    assert read_json(out) == report
    assert {file: file.read_bytes() for file in published_gate.iterdir()} == before
    assert main([*command, "--out", str(out)]) == 2
    assert main([*command, "--set", "no_such=1"]) == 2
    assert "no_such" in capsys.readouterr().err


def test_a_folder_without_observations_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"contributions\.json"):
        load_finished(tmp_path)


def test_a_changed_coefficient_is_noticed(published_gate: Path, tmp_path: Path) -> None:
    document = read_json(published_gate / "contributions.json")
    document["contributions"][0]["coefficient"] += 1e-6
    write_json(tmp_path / "contributions.json", document)
    assert main(["gate", "fit", str(tmp_path)]) == 1


def test_standard_errors_follow_the_textbook() -> None:
    layout = imagined_layout(8, [], 0)
    standard = power_report(layout, tasks=400, sd=0.3, profile="standard")
    assert list(standard["se"].values()) == pytest.approx([0.3 / 20] * 8, rel=0.002)
    published = power_report(layout, tasks=400, sd=0.3, profile="published")
    assert all(0.025 <= se <= 0.036 for se in published["se"].values())
    assert standard["mde"]["chunk-01"] == pytest.approx(DETECTABLE * 0.015, rel=0.002)


def test_detecting_003_takes_thousands_of_rollouts() -> None:
    layout = imagined_layout(10, [], 0)
    report = power_report(layout, tasks=400, sd=0.3, profile="published", effect=0.03)
    masked = report["rollouts"]["chunk-01"] / 2
    assert 2700 <= masked <= 4800
    half = power_report(layout, tasks=400, sd=0.3, profile="standard", effect=0.03)
    assert half["rollouts"]["chunk-01"] < 0.3 * report["rollouts"]["chunk-01"]


def test_more_candidates_than_the_gate_can_judge_is_a_warning() -> None:
    few = power_report(imagined_layout(5, [], 1), tasks=400, sd=0.3, profile="standard")
    assert few["warnings"] == []
    many = power_report(imagined_layout(5, [], 6), tasks=200, sd=0.3, profile="standard")
    assert any("6 candidates are admitted" in text for text in many["warnings"])
    settings = StandardSettings()
    assert judged_candidates(0.001, 0.05, settings) == 64
    assert judged_candidates(0.05, 0.05, settings) == 0


def test_power_takes_sd_and_slots_from_a_gate(
    published_gate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sd = difference_sd(load_finished(published_gate))
    assert sd == pytest.approx(0.1 * np.sqrt(2), rel=0.15)
    assert main(["gate", "power", "--gate", str(published_gate), "--tasks", "100"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["sd"] == sd
    assert len(report["se"]) == 4
    assert main(["gate", "power", "--tasks", "100"]) == 2
    assert "--sd" in capsys.readouterr().err


def test_plan_prints_the_published_hash(
    published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = published / "artifacts/round-002/analysis/candidate_pool.json"
    splits = published / "ShopSimulator/shop_env/configs/persona_splits.v1.json"
    command = ["gate", "plan", "--pool", str(pool), "--split-file", str(splits), "--split", "val"]
    command += ["--experiment-seed", "20260830", "--mask-seed", "20260901", "--json"]
    assert main(command) == 0
    plan = json.loads(capsys.readouterr().out)
    expected = "b3e740e122374803eb7209002f0f268f89ae6a5b0f5099de01b826de11f7628f"
    assert plan["assignment_sha256"] == expected
    assert plan["observations"] == 400
    assert set(plan["expected_se"]) == set(plan["columns"])
    assert main([*command, "--profile", "standard"]) == 0
    standard = json.loads(capsys.readouterr().out)
    assert standard["observations"] == 800
    ratio = [standard["expected_se"][c] / plan["expected_se"][c] for c in plan["columns"]]
    assert max(ratio) < 0.65
