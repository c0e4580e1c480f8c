"""A full disk, a folder that cannot be written, a locked database: a clear state, nothing broken.

The disk needs root for a file system of its own; elsewhere that test is skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.home_databases import locked, rows
from tests.jobs.chaos import documents_of
from tests.jobs.conftest import Undisturbed
from tests.jobs.homes import DEMO, Running, end_all, manage, processes_of

NAME = "quick-7"
ROUND = f"{NAME}/round-000"
WAIT = (*DEMO, "--wait", "--json")
LOCKED_S = 21.0
ROOMY, LEFT_BYTES = "4g", 16_384  # a training wants 2 GiB free before it begins
pytestmark = [pytest.mark.slow, pytest.mark.chaos, pytest.mark.long]


def mount(folder: Path, options: str) -> bool:
    """Mount, or mount again, a file system in memory; whether that is allowed here."""
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home whose runs lie on a file system of their own, which takes memory as it is used."""
    home = tmp_path / "home"
    runs = home / "runs"
    runs.mkdir(parents=True)
    if os.geteuid() != 0 or not mount(runs, f"size={ROOMY}"):
        pytest.skip("mounting a small file system needs root")
    yield home
    end_all(tmp_path)
    subprocess.run(["umount", "-l", str(runs)], check=False)


def make_full(runs: Path) -> None:
    """Leave next to nothing free, without writing anything."""
    facts = os.statvfs(runs)
    used = (facts.f_blocks - facts.f_bfree) * facts.f_frsize
    assert mount(runs, f"remount,size={used + LEFT_BYTES}")


def failed(home: Path, demo: Running, word: str) -> None:
    """The demo ends, its round is failed and says why, and nothing of it runs."""
    assert demo.process.wait(120) == 1, demo.everything
    status = json.loads(manage(home, "round_status", NAME, "--json").stdout)
    assert status["state"] == "failed"
    bad = [stage for stage in status["stages"] if stage["state"] == "failed"]
    assert len(bad) == 1 and word in bad[0]["message"], status
    assert processes_of(home) == []


@pytest.mark.once
def test_a_full_disk_and_a_read_only_folder_fail_clearly_and_go_on_to_the_same_documents(
    home: Path, undisturbed: Undisturbed
) -> None:
    runs = home / "runs"
    full = Running.start(home, *WAIT)
    full.until_file(f"{ROUND}/train/manifest.json")
    make_full(runs)
    failed(home, full, "No space left on device")
    assert mount(runs, f"remount,size={ROOMY}")
    read_only = Running.start(home, *WAIT)
    read_only.until_file(f"{ROUND}/validate/bare/manifest.json")
    # not while a file is open for writing
    read_only.until(lambda: mount(runs, "remount,ro"), "a folder that can be read only")
    failed(home, read_only, "Read-only file system")
    assert mount(runs, f"remount,rw,size={ROOMY}")
    Running.start(home, *WAIT).finish()
    assert documents_of(home, NAME) == documents_of(undisturbed.home, NAME)


def test_a_database_that_is_locked_for_twenty_seconds_costs_only_time(
    tmp_path: Path, undisturbed: Undisturbed
) -> None:
    home = tmp_path / "locked"
    demo = Running.start(home, *WAIT)
    try:
        demo.until_file(f"{ROUND}/train/manifest.json")
        with locked(home):
            time.sleep(LOCKED_S)
        lines = demo.finish()
        assert {line["status"] for line in lines[:-1]} == {"succeeded"}
        states = rows(home, "SELECT DISTINCT state FROM experiments_attempt")
        assert states == [("succeeded",)], "nothing failed and nothing was lost"
        assert documents_of(home, NAME) == documents_of(undisturbed.home, NAME)
    finally:
        end_all(tmp_path)
