"""The whole loop through a real queue and a real worker, undisturbed: real processes in homes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.jobs.conftest import Undisturbed
from tests.jobs.homes import DEMO, Running, manage, processes_of

STAGES = ["freeze", "train", "analyse", "validate", "gate", "select"]


@pytest.mark.slow
def test_the_demo_prints_a_line_a_stage_and_a_summary(undisturbed: Undisturbed) -> None:
    *stages, summary = undisturbed.lines
    assert [line["stage"] for line in stages] == STAGES
    assert {(line["round"], line["status"]) for line in stages} == {(0, "succeeded")}
    assert all(line["seconds"] > 0 for line in stages)
    assert summary["summary"] is True and summary["experiment"] == "quick-7"
    [round_] = summary["rounds"]
    assert round_["bank_size"] == 10
    assert len(round_["state_id"]) == 64
    assert 0 <= round_["bare_success"] <= 1 and 0 <= round_["full_success"] <= 1
    assert len(round_["gate"]["coefficients"]) == 10
    for row in round_["gate"]["coefficients"].values():
        assert set(row) == {"beta", "se", "status"}
        assert row["se"] > 0
    expected = {"curriculum", "checkpoint", "bank", "pool", "assignment", "contributions"}
    assert expected | {"metrics", "episodes", "masked", "test_bare"} <= set(round_["hashes"])
    assert summary["test"]["bare_success"] is not None


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.long
def test_the_loop_runs_with_a_standard_gate(homes: Path) -> None:
    *stages, summary = Running.start(
        homes / "standard", *DEMO, "--wait", "--json", "--profile", "standard"
    ).finish()
    assert [line["stage"] for line in stages] == STAGES
    assert {line["status"] for line in stages} == {"succeeded"}
    assert summary["experiment"] == "quick-7-standard"
    [round_] = summary["rounds"]
    assert (round_["gate"]["status"], round_["gate"]["observations"]) == ("complete", 40)
    statuses = {row["status"] for row in round_["gate"]["coefficients"].values()}
    assert statuses <= {"selected", "held", "retired"}
    gate = homes / "standard" / "runs" / "quick-7-standard" / "round-000" / "gate"
    manifest = json.loads((gate / "online_gate_manifest.json").read_text())
    assert manifest["config"]["profile"] == "standard"
    progress = json.loads((gate / "progress.json").read_text())
    assert progress["done"] == progress["total"] == 80
    status = json.loads(
        manage(homes / "standard", "round_status", "quick-7-standard", "--json").stdout
    )
    found = {stage["stage"]: (stage["done"], stage["total"]) for stage in status["stages"]}
    assert found["gate"] == (80, 80)


@pytest.mark.slow
def test_nothing_is_left_running(undisturbed: Undisturbed) -> None:
    assert processes_of(undisturbed.home) == []
    assert not (undisturbed.home / "instance.json").exists()


@pytest.mark.slow
def test_every_document_verifies_and_every_episode_is_found(
    undisturbed: Undisturbed,
) -> None:
    verified = json.loads(manage(undisturbed.home, "verify", "quick-7", "--json").stdout)
    assert verified["mismatched"] == [] and verified["documents"] > 20
    found = json.loads(manage(undisturbed.home, "episode_find", "purpose:train", "--json").stdout)
    assert found["total"] == 2 * 6 * 4
