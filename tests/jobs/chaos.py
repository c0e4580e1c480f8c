"""Killing what runs, and watching meanwhile whether rows say what is."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from jobs import process
from tests.home_databases import NotMadeYet, rows
from tests.jobs.homes import Running

LOOK_S = 0.5
KINDS = ("trainer", "keeper", "horse", "worker", "queue", "reconciler", "web")
STATES = "('requested', 'queued', 'starting', 'running', 'stopping')"
ACTIVE = f"""
    SELECT id, state, pid, pgid, process_started, watcher_pid, watcher_started
    FROM experiments_attempt WHERE state IN {STATES}
"""
OVER = f"""
    SELECT id, state, pid, pgid, process_started
    FROM experiments_attempt WHERE state NOT IN {STATES} AND pid IS NOT NULL
"""
LEASED = f"""
    SELECT h.name, a.id FROM jobs_host h JOIN experiments_attempt a ON a.id = h.lease_id
    WHERE a.state NOT IN {STATES}
"""


def state_of(home: Path, experiment: str) -> str:
    """The experiment's state; empty while there is none."""
    found = rows(home, "SELECT state FROM experiments_experiment WHERE name = ?", experiment)
    return str(found[0][0]) if found else ""


def documents_of(home: Path, experiment: str) -> dict[str, str]:
    """Path → hash of the contents of every document of an experiment's first round."""
    query = """
        SELECT d.path, d.content_sha256 FROM experiments_document d
        JOIN experiments_experiment e ON e.id = d.experiment_id
        WHERE e.name = ? AND d.content_sha256 != '' ORDER BY d.path
    """
    return {str(path): str(digest) for path, digest in rows(home, query, experiment)}


class Truth(threading.Thread):
    """Looks twice a second whether each row says what is.

    ``longest`` is the longest time, in seconds, for which one did not: that it runs, starts or
    stops with nobody there, that it waits although a worker could have taken it, that it is over
    while its processes live, or that a host's GPUs are leased by an attempt that is over.
    """

    def __init__(self, home: Path) -> None:
        super().__init__(daemon=True)
        self._home, self._over = home, threading.Event()
        self._since: dict[str, float] = {}
        self.longest, self.which = 0.0, ""

    def run(self) -> None:
        """Look until told to stop."""
        while not self._over.wait(LOOK_S):
            try:
                self._look()
            except NotMadeYet:
                continue

    def stop(self) -> None:
        """Look no more."""
        self._over.set()
        self.join()

    def _look(self) -> None:
        now = time.monotonic()
        false = set(self._false())
        for what in false:
            for_s = now - self._since.setdefault(what, now)
            if for_s > self.longest:
                self.longest, self.which = for_s, what
        self._since = {what: since for what, since in self._since.items() if what in false}

    def _false(self) -> Iterator[str]:
        for pk, state, pid, pgid, started, watcher, watcher_started in rows(self._home, ACTIVE):
            waits = state in ("requested", "queued")
            if waits or not (_lives(watcher, watcher_started) or _group_lives(pid, pgid, started)):
                yield f"attempt {pk} {state}"
        for pk, state, pid, pgid, started in rows(self._home, OVER):
            if _group_lives(pid, pgid, started):
                yield f"attempt {pk} {state}, though it works"
        for host, pk in rows(self._home, LEASED):
            yield f"{host} leased by attempt {pk}, which is over"


def _lives(pid: object, started: object) -> bool:
    return isinstance(pid, int) and process.is_same(pid, str(started))


def _group_lives(pid: object, pgid: object, started: object) -> bool:
    if not isinstance(pid, int) or not isinstance(pgid, int):
        return False
    return process.is_alive(process.ProcessRef(pid, pgid, str(started)))


class Killer:
    """Kills kinds of processes in a random order, every kind as often as the others."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        self.killed: list[str] = []
        self._bag: list[str] = []

    def kill_one(self, running: Running) -> bool:
        """Kill one process of the kind whose turn it is, or of another where none lives."""
        if not self._bag:
            self._bag = list(KINDS)
            self.draw.shuffle(self._bag)
        for kind in list(self._bag):
            if running.kill(kind, self.draw):
                self._bag.remove(kind)
                self.killed.append(kind)
                return True
        return False


@contextmanager
def bystanders() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes of other people that look like ours and must live on."""
    pause = "import time; time.sleep(3600)"
    looks = (("-m", "trainer", "train"), ("valkey-server",), ("manage.py", "worker"))
    others = [
        subprocess.Popen([sys.executable, "-c", pause, *look], start_new_session=number > 0)
        for number, look in enumerate(looks)
    ]
    try:
        yield others
    finally:
        for other in others:
            other.kill()
            other.wait()
