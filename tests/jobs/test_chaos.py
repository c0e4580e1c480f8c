"""The whole loop, disturbed: whatever dies or is full, the documents are those of a quiet run.

All runs are real processes in their own homes. ``INTRASKILL_SOAK_KILLS`` makes a longer soak.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.home_databases import on_postgres
from tests.jobs.chaos import KINDS, Killer, Truth, bystanders, documents_of, state_of
from tests.jobs.conftest import Undisturbed
from tests.jobs.homes import DEMO, Running, manage, processes_of
from tests.ports import free_port

NAME = "quick-7"
# on PostgreSQL each kind twice: what is new there is what the rows say after a kill
KILLS = int(os.environ.get("INTRASKILL_SOAK_KILLS") or (14 if on_postgres() else 30))
FALSE_S = 30.0
LONGEST_S = 400.0  # of one round, disturbed ten times as long as undisturbed
pytestmark = [pytest.mark.slow, pytest.mark.chaos]


def test_kills_at_random_instants_change_no_document_and_leave_no_false_row(
    undisturbed: Undisturbed, homes: Path
) -> None:
    quiet = documents_of(undisturbed.home, NAME)
    assert len(quiet) > 20
    killer, runs = Killer(20260830), 0
    with bystanders() as others:
        while len(killer.killed) < KILLS:
            runs += 1
            home = homes / f"chaos-{runs}"
            up = Running.start(home, "up", INTRASKILL_PORT=str(free_port()))
            truth = Truth(home)
            truth.start()
            up.until_said("ready")
            assert manage(home, *DEMO).returncode == 0
            deadline = time.monotonic() + LONGEST_S * undisturbed.slowness
            while state_of(home, NAME) not in ("succeeded", "stopped"):
                assert time.monotonic() < deadline, (state_of(home, NAME), killer.killed)
                time.sleep(killer.draw.uniform(0.5, 4.5) * undisturbed.slowness)
                assert up.process.poll() is None, up.everything
                if len(killer.killed) < KILLS:
                    killer.kill_one(up)
            truth.stop()
            assert state_of(home, NAME) == "succeeded", (killer.killed, up.everything)
            assert documents_of(home, NAME) == quiet, killer.killed
            assert truth.longest <= FALSE_S * undisturbed.slowness, truth.which
            said = f"{len(killer.killed)} kills; a row was false for {truth.longest:.1f} s at most"
            sys.stdout.write(f"{said}\n")
            up.process.send_signal(signal.SIGTERM)
            assert up.process.wait(60) == 0
            assert processes_of(home) == []
        assert [other.poll() for other in others] == [None] * len(others)
    assert set(killer.killed) == set(KINDS)
