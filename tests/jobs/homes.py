"""Running the product's commands as real processes in their own homes."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import psutil

from tests import home_databases

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 400.0
DEMO = ("demo", "--quick", "--rounds", "1", "--seed", "7")  # the round that tests disturb


def environment(home: Path, **more: str) -> dict[str, str]:
    """The environment of a command that works on ``home`` and a database of its own."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "REDIS_URL")}
    return {
        **inherited,
        **home_databases.address(home),
        "INTRASKILL_HOME": str(home),
        "DJANGO_SETTINGS_MODULE": "intraskill_web.settings",
        "INTRASKILL_WARM": "0",
        **more,
    }


def manage(home: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment(home, **more),
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )


@dataclass
class Running:
    """A command that runs in the background; its output goes to files in its home."""

    home: Path
    process: subprocess.Popen[str]
    says: str = "std"  # what the names of these files begin with

    @classmethod
    def start(cls, home: Path, *arguments: str, says: str = "std", **more: str) -> Running:
        home.mkdir(parents=True, exist_ok=True)
        with (home / f"{says}err").open("w") as errors, (home / f"{says}out").open("w") as output:
            process = subprocess.Popen(
                [sys.executable, "manage.py", *arguments],
                cwd=ROOT,
                env=environment(home, **more),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                text=True,
            )
        return cls(home, process, says)

    @property
    def output(self) -> str:
        """What it printed so far."""
        return (self.home / f"{self.says}out").read_text()

    @property
    def everything(self) -> str:
        """What it printed and what it said, for messages of failed tests."""
        return self.output + (self.home / f"{self.says}err").read_text()

    def finish(self) -> list[dict[str, Any]]:
        """The JSON lines it printed; fails with its messages when it did not succeed."""
        assert self.process.wait(LIMIT_S) == 0, self.everything
        return [json.loads(line) for line in self.output.splitlines()]

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for something to become true while the command runs."""
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            assert self.process.poll() is None, f"ended before {what}: {self.everything}"
            assert time.monotonic() < deadline, f"never saw {what}: {self.everything}"
            time.sleep(0.05)

    def until_said(self, text: str) -> None:
        """Wait until it printed ``text``."""
        self.until(lambda: text in self.output, repr(text))

    def until_file(self, name: str) -> None:
        """Wait for a file under the home's runs."""
        path = self.home / "runs" / name
        self.until(path.exists, name)

    def pid_of(self, name: str) -> int:
        """The pid that a service of this home's supervisor had when it was last started."""
        record = json.loads((self.home / "instance.json").read_text())
        return int(record["children"][name]["pid"])

    def service(self, name: str) -> psutil.Process:
        """A service of this home's supervisor that lives."""
        return psutil.Process(self.pid_of(name))

    def kill_service(self, name: str) -> None:
        """Kill a service; the supervisor shall start it again."""
        self.service(name).kill()

    def kill(self, kind: str, draw: Random) -> bool:
        """Kill one process of this kind that lives just now, if there is any."""
        living = [process for process in self._living(kind) if process.is_running()]
        if not living:
            return False
        with contextlib.suppress(psutil.NoSuchProcess):
            draw.choice(living).kill()
            return True
        return False

    def _living(self, kind: str) -> list[psutil.Process]:
        if kind == "trainer":
            return trainers(self.home)
        if kind == "keeper":
            return [process for process, line in processes_of(self.home) if "keeper.py" in line]
        try:
            service = self.service("worker" if kind == "horse" else kind)
            return service.children() if kind == "horse" else [service]
        except (psutil.NoSuchProcess, FileNotFoundError, KeyError):  # just now it is not there
            return []


def processes_of(home: Path) -> list[tuple[psutil.Process, str]]:
    """Every living process that works for ``home``, with its command line.

    The queue server writes its title over its environment; it is known by where it works.
    """
    found = []
    for process in psutil.process_iter():
        try:
            inside = Path(process.cwd()).is_relative_to(home)
            if process.environ().get("INTRASKILL_HOME") != str(home) and not inside:
                continue
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append((process, " ".join(process.cmdline())))
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def trainers(home: Path) -> list[psutil.Process]:
    """The processes of the method that work for ``home``, without their keepers."""
    return [p for p, line in processes_of(home) if "-m trainer" in line and "keeper" not in line]


def end_all(folder: Path) -> None:
    """Kill whatever still works for any home in ``folder``."""
    for home in folder.iterdir():
        for process, _line in processes_of(home):
            process.kill()
