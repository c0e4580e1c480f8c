"""``manage.py up``: one command runs a home, and ends what it started and nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.home_databases import leave_empty, rows
from tests.jobs.homes import Running, end_all, environment, manage, processes_of
from tests.ports import free_port

pytestmark = [pytest.mark.slow, pytest.mark.once]


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "homes"
    folder.mkdir()
    yield folder
    end_all(folder)


def address_of(running: Running) -> str:
    running.until_said("ready: ")
    return running.output.split("ready: ")[1].split()[0]


def workers_of(home: Path) -> list[list[str]]:
    """The kinds that each worker of the home's host listens to."""
    ((found,),) = rows(home, "SELECT workers FROM jobs_host")
    workers = json.loads(found) if isinstance(found, str) else found
    return [sorted(name.rpartition(":")[2] for name in worker["queues"]) for worker in workers]


def test_it_serves_pages_prints_the_first_password_once_and_ends_clean(homes: Path) -> None:
    home = homes / "one"
    leave_empty(home)
    port = str(free_port())
    up = Running.start(home, "up", INTRASKILL_PORT=port)
    address = address_of(up)
    assert address == f"http://127.0.0.1:{port}/"
    with urllib.request.urlopen(f"{address}login/") as answer:
        assert answer.status == 200
    password = (home / "secrets" / "admin-password").read_text().strip()
    assert f"first login: admin / {password}" in up.output
    doctor = json.loads(manage(home, "doctor", "--json").stdout)
    assert doctor["ok"], doctor
    up.until(lambda: len(workers_of(home)) == 2, "a worker for stages and one beside it")
    assert sorted(workers_of(home)) == [["cpu", "gpu"], ["work"]]
    up.process.send_signal(signal.SIGINT)
    assert up.process.wait(60) == 0
    assert up.output.endswith("ended\n")
    assert processes_of(home) == []
    again = Running.start(home, "up", INTRASKILL_PORT=port)
    assert address_of(again) == address
    assert "first login" not in again.output
    again.process.send_signal(signal.SIGTERM)
    assert again.process.wait(60) == 0


def test_a_second_start_of_the_same_home_is_refused(homes: Path) -> None:
    up = Running.start(homes / "one", "up", "--no-web")
    up.until_said("ready")
    second = manage(homes / "one", "up", "--no-web")
    assert second.returncode == 2
    assert f"already run by process {up.process.pid}" in second.stdout
    assert up.process.poll() is None
    up.process.send_signal(signal.SIGINT)
    assert up.process.wait(60) == 0


def test_of_two_starts_at_once_one_runs_and_the_other_names_it_and_the_remedy(
    homes: Path,
) -> None:
    home = homes / "contested"
    environment(home)  # its database is there before the race
    both = [Running.start(home, "up", "--no-web", says=says) for says in ("one", "two")]
    deadline = time.monotonic() + 60
    while all(up.process.poll() is None for up in both):
        assert time.monotonic() < deadline, [up.everything for up in both]
        time.sleep(0.02)
    (loser,) = [up for up in both if up.process.poll() is not None]
    (winner,) = [up for up in both if up is not loser]
    assert loser.process.wait(10) == 2, loser.everything
    assert f"this home is already run by process {winner.process.pid}" in loser.output
    assert "Use that one, stop it with Ctrl-C, or set another INTRASKILL_HOME" in loser.output
    winner.until_said("ready")
    winner.process.send_signal(signal.SIGINT)
    assert winner.process.wait(60) == 0
    assert processes_of(home) == []


def test_a_static_folder_that_cannot_be_written_is_said_with_its_remedy(homes: Path) -> None:
    static = homes / "one" / "static"
    static.mkdir(parents=True)
    options = ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(static)]
    if os.geteuid():  # root may write whatever the mode says
        static.chmod(0o555)
    elif subprocess.run(options, capture_output=True, check=False).returncode:
        pytest.skip("root needs a file system that is read only")
    try:
        up = manage(homes / "one", "up", INTRASKILL_PORT=str(free_port()))
    finally:
        subprocess.run(["umount", "-l", str(static)], capture_output=True, check=False)
        static.chmod(0o755)
    assert up.returncode == 2, up.stdout + up.stderr
    assert "error: " in up.stdout and "static files cannot be published: " in up.stdout
    assert f"Make {static} writable" in up.stdout and "Traceback" not in up.stdout + up.stderr
    assert processes_of(homes / "one") == []


@pytest.mark.long
def test_two_homes_run_side_by_side_and_a_taken_port_is_said(homes: Path) -> None:
    port = str(free_port())
    one = Running.start(homes / "one", "up", INTRASKILL_PORT=port)
    first = address_of(one)
    two = Running.start(homes / "two", "up", INTRASKILL_PORT=port)
    second = address_of(two)
    assert f"port {port} is taken; using " in two.output
    assert first != second
    one.process.send_signal(signal.SIGINT)
    assert one.process.wait(60) == 0
    assert processes_of(homes / "one") == []
    with urllib.request.urlopen(f"{second}login/") as answer:
        assert answer.status == 200
    assert json.loads(manage(homes / "two", "doctor", "--json").stdout)["ok"]
    two.process.send_signal(signal.SIGINT)
    assert two.process.wait(60) == 0


@pytest.mark.chaos
@pytest.mark.long
def test_services_that_are_killed_come_back(homes: Path) -> None:
    up = Running.start(homes / "one", "up", INTRASKILL_PORT=str(free_port()))
    address = address_of(up)
    before = {name: up.pid_of(name) for name in ("queue", "worker", "reconciler", "web")}
    for name in before:
        up.kill_service(name)
    up.until(lambda: all(up.pid_of(name) != pid for name, pid in before.items()), "new services")

    def all_well() -> bool:
        return bool(json.loads(manage(homes / "one", "doctor", "--json").stdout)["ok"])

    up.until(all_well, "a healthy instance")
    with urllib.request.urlopen(f"{address}login/") as answer:
        assert answer.status == 200
    up.process.send_signal(signal.SIGINT)
    assert up.process.wait(60) == 0
    assert processes_of(homes / "one") == []
