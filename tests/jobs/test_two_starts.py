"""Several processes start one round at the same moment: exactly one does."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from django.db import connection

from tests.jobs.homes import ROOT, environment, manage

STARTERS = 4
LIMIT_S = 120.0
REFUSALS = ("this round was started a moment ago", "round 0 is running", "all 1 planned rounds")
Environment = dict[str, str]


@pytest.fixture
def own_database(transactional_db: None) -> Iterator[Environment]:
    """A PostgreSQL database of its own beside that of the tests."""
    with connection.cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS contested")
        cursor.execute("CREATE DATABASE contested")
    at = connection.settings_dict
    user, password = quote(at["USER"] or ""), quote(at["PASSWORD"] or "")
    login = f"{user}:{password}" if password else user
    address = f"postgres://{login}@{at['HOST']}:{at['PORT']}/contested"
    yield {"DATABASE_URL": address}
    with connection.cursor() as cursor:
        cursor.execute("DROP DATABASE contested WITH (FORCE)")


def start_at_once(home: Path, more: Environment) -> list[str]:
    """What every starter said."""
    assert manage(home, "migrate", "-v0", **more).returncode == 0
    command = [sys.executable, "-m", "tests.jobs.starting"]
    env = environment(home, **more)
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
    return [starter.communicate(timeout=LIMIT_S)[0].strip() for starter in starters]


def exactly_one(said: list[str]) -> None:
    assert said.count("started") == 1, said
    refused = [line for line in said if line != "started"]
    assert all(line.startswith(REFUSALS) for line in refused), said


@pytest.mark.slow
def test_of_starts_at_once_exactly_one_runs_on_sqlite(tmp_path: Path) -> None:
    exactly_one(start_at_once(tmp_path / "home", {}))


@pytest.mark.postgres
def test_of_starts_at_once_exactly_one_runs_on_postgresql(
    tmp_path: Path, own_database: Environment
) -> None:
    exactly_one(start_at_once(tmp_path / "home", own_database))
