"""The whole loop through a real queue and a real worker, undisturbed and disturbed.

All runs are real processes in their own homes; the disturbed ones must come to the same documents.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.jobs.homes import Running, end_all, manage, processes_of

DEMO = ("demo", "--quick", "--rounds", "1", "--seed", "7", "--wait", "--json")
ROUND = "quick-7/round-000"
SOAK_KILLS = int(os.environ.get("INTRASKILL_SOAK_KILLS", "0"))
STAGES = ["freeze", "train", "analyse", "validate", "gate", "select"]


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("homes")
    yield folder
    end_all(folder)


@pytest.fixture(scope="module")
def undisturbed(homes: Path) -> list[dict[str, Any]]:
    return Running.start(homes / "undisturbed", *DEMO).finish()


def hashes(lines: list[dict[str, Any]]) -> dict[str, str]:
    return dict(lines[-1]["rounds"][0]["hashes"])


@pytest.mark.slow
def test_the_demo_prints_a_line_a_stage_and_a_summary(undisturbed: list[dict[str, Any]]) -> None:
    *stages, summary = undisturbed
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
def test_the_loop_runs_with_a_standard_gate(homes: Path) -> None:
    *stages, summary = Running.start(homes / "standard", *DEMO, "--profile", "standard").finish()
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
def test_nothing_is_left_running(undisturbed: list[dict[str, Any]], homes: Path) -> None:
    assert processes_of(homes / "undisturbed") == []
    assert not (homes / "undisturbed" / "instance.json").exists()


@pytest.mark.slow
def test_every_document_verifies_and_every_episode_is_found(
    undisturbed: list[dict[str, Any]], homes: Path
) -> None:
    verified = json.loads(manage(homes / "undisturbed", "verify", "quick-7", "--json").stdout)
    assert verified["mismatched"] == [] and verified["documents"] > 20
    found = json.loads(
        manage(homes / "undisturbed", "episode_find", "purpose:train", "--json").stdout
    )
    assert found["total"] == 2 * 6 * 4


@pytest.mark.slow
@pytest.mark.chaos
def test_killing_trainer_worker_queue_and_reconciler_changes_no_document(
    undisturbed: list[dict[str, Any]], homes: Path
) -> None:
    demo = Running.start(homes / "disturbed", *DEMO)
    demo.until_file(f"{ROUND}/baseline/bare/manifest.json")
    demo.kill_worker()
    demo.until_file(f"{ROUND}/train/metrics.jsonl")
    demo.kill_trainer()
    demo.until_file(f"{ROUND}/validate/bare/manifest.json")
    demo.kill_service("queue")
    demo.until_file(f"{ROUND}/gate/manifest.json")
    demo.kill_service("reconciler")
    demo.kill_worker()
    assert hashes(demo.finish()) == hashes(undisturbed)
    assert processes_of(homes / "disturbed") == []


@pytest.mark.slow
@pytest.mark.chaos
def test_a_shutdown_in_the_middle_and_a_new_start_change_no_document(
    undisturbed: list[dict[str, Any]], homes: Path
) -> None:
    home = homes / "interrupted"
    first = Running.start(home, *DEMO)
    first.until_file(f"{ROUND}/train/metrics.jsonl")
    first.process.send_signal(signal.SIGTERM)
    assert first.process.wait(60) == 128 + signal.SIGTERM
    assert processes_of(home) == []
    status = json.loads(manage(home, "round_status", "quick-7", "--json").stdout)
    train = next(stage for stage in status["stages"] if stage["stage"] == "train")
    assert train["state"] in ("stopped", "succeeded"), status
    assert hashes(Running.start(home, *DEMO).finish()) == hashes(undisturbed)


@pytest.mark.slow
@pytest.mark.chaos
def test_a_killed_supervisor_leaves_nothing_that_the_next_one_does_not_take_up(
    undisturbed: list[dict[str, Any]], homes: Path
) -> None:
    home = homes / "beheaded"
    first = Running.start(home, *DEMO)
    first.until_file(f"{ROUND}/train/manifest.json")
    first.process.kill()
    first.process.wait()
    assert processes_of(home), "its services and the trainer live on"
    assert hashes(Running.start(home, *DEMO).finish()) == hashes(undisturbed)
    assert processes_of(home) == []


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.skipif(not SOAK_KILLS, reason="only in a soak: set INTRASKILL_SOAK_KILLS")
def test_many_kills_at_random_instants_change_no_document(
    undisturbed: list[dict[str, Any]], homes: Path
) -> None:
    draw = Random(20260830)
    kills = runs = 0
    while kills < SOAK_KILLS:
        runs += 1
        home = homes / f"soak-{runs}"
        demo = Running.start(home, *DEMO)
        demo.until((home / "instance.json").exists, "its services")
        while demo.process.poll() is None and kills < SOAK_KILLS:
            time.sleep(draw.uniform(0.5, 8.0))
            kills += demo.kill_something(draw)
        assert hashes(demo.finish()) == hashes(undisturbed), demo.killed
        assert processes_of(home) == []
