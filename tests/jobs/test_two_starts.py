"""Several processes start one round at the same moment: exactly one does."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.jobs.homes import ROOT, environment, manage

STARTERS = 4
LIMIT_S = 120.0
REFUSALS = ("this round was started a moment ago", "round 0 is running", "all 1 planned rounds")


@pytest.mark.slow
def test_of_starts_at_once_exactly_one_runs(homes: Path) -> None:
    home = homes / "contested"
    assert manage(home, "migrate", "-v0").returncode == 0
    command = [sys.executable, "-m", "tests.jobs.starting"]
    env = environment(home)
    subprocess.run([*command, "make"], cwd=ROOT, env=env, check=True, timeout=LIMIT_S)
    starters = [
        subprocess.Popen(
            [*command, "start", str(number)], cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True
        )
        for number in range(STARTERS)
    ]  # fmt: skip
    deadline = time.monotonic() + LIMIT_S
    while len(list(home.glob("ready-*"))) < STARTERS:
        assert time.monotonic() < deadline, "not all became ready"
        time.sleep(0.05)
    (home / "go").touch()
    said = [starter.communicate(timeout=LIMIT_S)[0].strip() for starter in starters]
    assert said.count("started") == 1, said
    refused = [line for line in said if line != "started"]
    assert all(line.startswith(REFUSALS) for line in refused), said
