"""Each look is a process of its own: few run at a time, and one at equal inputs."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from intraskill_web.monitoring.preflight import run
from intraskill_web.monitoring.preflight.items import Item
from intraskill_web.monitoring.preflight.looks import alone


def test_at_most_two_looks_run_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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
    file = tmp_path / "launch.yaml"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run.look_at_launch, [file] * 8))
    assert len(at_once) == 8 and max(at_once) == 2


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
