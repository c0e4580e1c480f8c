"""The loop, interrupted on purpose or by accident: it goes on to the documents of a quiet run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.jobs.chaos import documents_of
from tests.jobs.conftest import Undisturbed
from tests.jobs.homes import DEMO, ROOT, Running, environment, manage, processes_of

NAME = "quick-7"
ROUND = f"{NAME}/round-000"
WAIT = (*DEMO, "--wait", "--json")
pytestmark = [pytest.mark.slow, pytest.mark.chaos, pytest.mark.long]


def test_a_shutdown_in_the_middle_and_a_new_start_change_no_document(
    undisturbed: Undisturbed, homes: Path
) -> None:
    home = homes / "interrupted"
    first = Running.start(home, *WAIT)
    first.until_file(f"{ROUND}/train/metrics.jsonl")
    first.process.send_signal(signal.SIGTERM)
    assert first.process.wait(60) == 128 + signal.SIGTERM
    assert processes_of(home) == []
    assert "Traceback" not in first.everything, first.everything
    status = json.loads(manage(home, "round_status", NAME, "--json").stdout)
    train = next(stage for stage in status["stages"] if stage["stage"] == "train")
    assert train["state"] in ("stopped", "succeeded"), status
    Running.start(home, *WAIT).finish()
    assert documents_of(home, NAME) == documents_of(undisturbed.home, NAME)


def test_a_killed_supervisor_leaves_nothing_that_the_next_one_does_not_take_up(
    undisturbed: Undisturbed, homes: Path
) -> None:
    home = homes / "beheaded"
    first = Running.start(home, *WAIT)
    first.until_file(f"{ROUND}/train/manifest.json")
    first.process.kill()
    first.process.wait()
    assert processes_of(home), "its services and the trainer live on"
    Running.start(home, *WAIT).finish()
    assert documents_of(home, NAME) == documents_of(undisturbed.home, NAME)
    assert processes_of(home) == []


def test_every_stage_stops_within_ten_seconds_and_goes_on_to_the_same_documents(
    undisturbed: Undisturbed, homes: Path
) -> None:
    home = homes / "stopped"
    up = Running.start(home, "up", "--no-web")
    up.until_said("ready")
    stopper = subprocess.run(
        [sys.executable, "-m", "tests.jobs.stopping"],
        cwd=ROOT, env=environment(home), capture_output=True, text=True, check=False, timeout=400,
    )  # fmt: skip
    assert stopper.returncode == 0, stopper.stderr + up.everything
    stops = [json.loads(line) for line in stopper.stdout.splitlines()]
    sys.stdout.write(f"{stops}\n")
    assert [stop["stage"] for stop in stops] == [
        "freeze", "train", "analyse", "validate", "gate", "select",
    ]  # fmt: skip
    assert all(stop["seconds"] <= 10 for stop in stops), stops
    assert sum(stop["state"] == "stopped" for stop in stops) >= 4, stops
    assert documents_of(home, NAME) == documents_of(undisturbed.home, NAME)
    up.process.send_signal(signal.SIGTERM)
    assert up.process.wait(60) == 0
    assert processes_of(home) == []
