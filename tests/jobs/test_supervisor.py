"""The supervisor: in which order services end, and when the demonstration goes on by itself."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from intraskill_web.experiments.models import Attempt, Experiment
from intraskill_web.experiments.moves import move
from intraskill_web.experiments.planning import pause_after_stage
from intraskill_web.experiments.services import start_round, stop_round
from jobs import demo
from jobs.services.supervisor import Service, Supervisor
from jobs.transitions import State

Jobs = list[tuple[int, str]]
# says goodbye to a file when asked to end, the slow one a moment later
FAREWELL = """
import signal, sys, time
def leave(*_):
    time.sleep({wait})
    with open({file!r}, "a") as handle:
        handle.write({name!r} + "\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
print("up", flush=True)
while True:
    time.sleep(1)
"""


def test_what_others_lean_on_ends_last(tmp_path: Path) -> None:
    said: list[str] = []
    supervisor = Supervisor(tmp_path, tmp_path, os.environ, said.append)
    file = str(tmp_path / "farewells")
    for name, wait in (("queue", 0.0), ("worker", 0.5)):
        script = FAREWELL.format(wait=wait, file=file, name=name)
        argv = (sys.executable, "-c", script)
        supervisor.start(Service(name, argv, is_leant_on=name == "queue"))
    deadline = time.monotonic() + 20
    while sum(line.endswith("up") for line in said) < 2:
        assert time.monotonic() < deadline, said
        time.sleep(0.02)
    supervisor.stop()
    assert Path(file).read_text().split() == ["worker", "queue"]
    assert supervisor.services == []


@pytest.fixture
def demonstration(experiment: Experiment, handed_in: Jobs) -> Experiment:
    experiment.name = demo.DEMO
    experiment.save()
    start_round(experiment)
    return experiment


def end(state: State, **fields: str) -> None:
    attempt = Attempt.objects.latest("pk")
    for step in (State.STARTING, State.RUNNING):
        move(attempt, step)
    assert move(attempt, state, **fields)


def test_a_demonstration_that_was_stopped_on_purpose_stays_stopped(
    demonstration: Experiment, handed_in: Jobs
) -> None:
    stop_round(demonstration)
    assert "stays so" in demo.start_or_continue()
    assert len(handed_in) == 1


def test_a_demonstration_that_was_paused_stays_paused(
    demonstration: Experiment, handed_in: Jobs
) -> None:
    pause_after_stage(demonstration, True)
    end(State.SUCCEEDED)
    assert "stays so" in demo.start_or_continue()
    assert len(handed_in) == 1


def test_a_demonstration_that_failed_is_resumed(demonstration: Experiment, handed_in: Jobs) -> None:
    end(State.FAILED)
    assert "is resumed" in demo.start_or_continue()
    assert len(handed_in) == 2


def test_a_shutdown_is_no_purpose(demonstration: Experiment, handed_in: Jobs) -> None:
    end(State.STOPPED, stop_reason="shutdown")
    assert "is resumed" in demo.start_or_continue()
