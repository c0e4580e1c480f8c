"""Each look is a process of its own: few run at a time, and one at equal inputs."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from intraskill_web.monitoring.preflight import run
from intraskill_web.monitoring.preflight.items import Item
from intraskill_web.monitoring.preflight.looks import alone
from tests.jobs.homes import ROOT, environment

LOOK = """
import os, time
from pathlib import Path
import django
django.setup()
from django.conf import settings
from intraskill_web.monitoring.preflight import run
def slow(file):
    begun = time.monotonic()
    time.sleep(0.3)
    print(begun, time.monotonic(), flush=True)
    return []
run._trainer = slow
home = Path(settings.INTRASKILL_HOME)
(home / f"ready-{os.getpid()}").touch()
while not (home / "go").exists():
    time.sleep(0.01)
run._findings(Path("launch.yaml"))
"""


def test_at_most_two_look_at_a_time_in_a_home(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    at_once: list[int] = []
    running: set[int] = set()

    def slow(_file: Path) -> list[Item]:
        running.add(threading.get_ident())
        at_once.append(len(running))
        time.sleep(0.02)
        running.discard(threading.get_ident())
        return []

    monkeypatch.setattr(run, "_trainer", slow)
    monkeypatch.setattr(run, "_keep", lambda *_arguments: None)
    file = home / "launch.yaml"
    file.touch()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run.look_at_launch, [file] * 8))
    assert len(at_once) == 8 and max(at_once) == 2


def test_processes_of_one_home_wait_for_each_other_and_a_killed_one_is_not_waited_for(
    tmp_path: Path,
) -> None:
    stuck = [_start(tmp_path, LOOK.replace("0.3", "60")) for _ in range(2)]
    looking: list[subprocess.Popen[str]] = []
    try:
        (tmp_path / "go").touch()
        _until(lambda: len(_locked(tmp_path)) == 2)
        (tmp_path / "go").unlink()
        looking += [_start(tmp_path, LOOK) for _ in range(4)]
        _until(lambda: len(list(tmp_path.glob("ready-*"))) == 6)
        (tmp_path / "go").touch()
        time.sleep(0.5)
        assert all(process.poll() is None for process in looking), "they wait"
        for process in stuck:
            process.kill()
        said = [process.communicate(timeout=60)[0].split() for process in looking]
    finally:
        for process in (*stuck, *looking):
            process.kill()
            process.wait()
    spans = [(float(begun), float(ended)) for begun, ended in said]
    at_once = [sum(b <= begun < e for b, e in spans) for begun, _end in spans]
    assert len(spans) == 4 and max(at_once) <= 2


def _start(home: Path, script: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=ROOT, env=environment(home), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def _locked(home: Path) -> list[Path]:
    """The places that somebody holds."""
    held = []
    for file in home.glob("look-*.lock"):
        with file.open("a") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held.append(file)
    return held


def _until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_of_equal_inputs_one_is_looked_at_at_a_time() -> None:
    inside: list[str] = []

    def look(key: str) -> int:
        with alone(key):
            inside.append(key)
            time.sleep(0.01)
            most = inside.count("a")
            inside.remove(key)
        return most

    with ThreadPoolExecutor(6) as pool:
        assert max(pool.map(look, ["a", "a", "b", "a", "a", "b"])) == 1
