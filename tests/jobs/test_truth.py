"""What watches over the chaos finds every kind of false row itself."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs import process
from tests.jobs import chaos

Rows = dict[str, list[tuple[object, ...]]]


@pytest.fixture
def pid() -> Iterator[int]:
    """A process that leads a group of its own, as a keeper does."""
    pause = [sys.executable, "-c", "import time; time.sleep(600)"]
    with subprocess.Popen(pause, start_new_session=True) as other:
        yield other.pid
        other.kill()


def found(monkeypatch: pytest.MonkeyPatch, rows: Rows) -> set[str]:
    """What is false while a home's database answers with ``rows``."""
    monkeypatch.setattr(chaos, "rows", lambda _home, query: rows.get(query, []))
    truth = chaos.Truth(Path("nowhere"))
    truth._look()
    time.sleep(0.01)
    truth._look()
    assert (truth.longest > 0) is bool(truth._since)
    return set(truth._since)


def test_a_row_that_is_over_while_its_process_lives_is_false(
    monkeypatch: pytest.MonkeyPatch, pid: int
) -> None:
    token = process.start_token(pid)
    lives = {chaos.OVER: [(7, "lost", pid, pid, token)]}
    assert found(monkeypatch, lives) == {"attempt 7 lost, though it works"}
    assert found(monkeypatch, {chaos.OVER: [(7, "lost", pid, pid, "another boot")]}) == set()


def test_a_row_that_works_with_nobody_there_is_false(
    monkeypatch: pytest.MonkeyPatch, pid: int
) -> None:
    token = process.start_token(pid)
    runs = (pid, pid, token, None, "")
    assert found(monkeypatch, {chaos.ACTIVE: [(7, "running", *runs)]}) == set()
    gone = (pid, pid, "another boot", None, "")
    assert found(monkeypatch, {chaos.ACTIVE: [(7, "running", *gone)]}) == {"attempt 7 running"}
    assert found(monkeypatch, {chaos.ACTIVE: [(7, "queued", *runs)]}) == {"attempt 7 queued"}


def test_a_lease_of_an_attempt_that_is_over_is_false(monkeypatch: pytest.MonkeyPatch) -> None:
    said = found(monkeypatch, {chaos.LEASED: [("gpu-1", 7)]})
    assert said == {"gpu-1 leased by attempt 7, which is over"}
