"""Runs the services of one home: starts each in its own session, prints what they say, starts them
again when they die, and ends them, and nothing else, at the end.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from jobs import process as processes
from jobs.services import instance

COLOURS = (36, 33, 35, 32, 34)
STOP_GRACE_S = 10.0
BACKOFF_S = (0.5, 1.0, 2.0, 5.0, 10.0)
STEADY_S = 30.0  # after so long a service counts as healthy again


@dataclass(slots=True)
class Service:
    """One long-running command. ``ends_with`` is the signal that asks it to end in good order."""

    name: str
    argv: Sequence[str]
    ends_with: signal.Signals = signal.SIGTERM
    is_leant_on: bool = False  # others work with it until they end
    process: subprocess.Popen[bytes] | None = None
    ref: processes.ProcessRef | None = None
    started_at: float = 0.0
    failures: int = 0
    due_at: float = 0.0
    asked_to_end: bool = False


@dataclass(slots=True)
class Supervisor:
    """The services of one home. ``say`` prints a line; ``env`` is what they all get."""

    home: Path
    cwd: Path
    env: Mapping[str, str]
    say: Callable[[str], None]
    facts: dict[str, object] = field(default_factory=dict)
    services: list[Service] = field(default_factory=list)
    stopping: bool = False

    def start(self, service: Service) -> None:
        """Start a service and look after it from now on."""
        self.services.append(service)
        self._launch(service)

    def watch(self) -> None:
        """One look at all services: those that died start again, later each time they die young."""
        for service in self.services:
            if service.process is not None and service.process.poll() is not None:
                self._note_death(service)
            if service.process is None and time.monotonic() >= service.due_at:
                self._launch(service)

    def stop(self) -> None:
        """End all services in reverse order of their start, those that others lean on last."""
        self.stopping = True
        for last in (False, True):
            chosen = [s for s in reversed(self.services) if s.is_leant_on == last]
            for service in chosen:
                self.ask_to_end(service)
            for service in chosen:
                self._await_end(service)
                self.services.remove(service)
        self._record()

    def ask_to_end(self, service: Service) -> None:
        """Send the service its ending signal once, without waiting: a second one means haste."""
        alive = service.process is not None and service.process.poll() is None
        if service.process is not None and alive and not service.asked_to_end:
            service.asked_to_end = True
            service.process.send_signal(service.ends_with)

    def _launch(self, service: Service) -> None:
        service.process = subprocess.Popen(
            service.argv,
            cwd=self.cwd,
            env=dict(self.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        service.asked_to_end = False
        pid = service.process.pid
        service.ref = processes.ProcessRef(pid, pid, processes.start_token(pid))
        service.started_at = time.monotonic()
        assert service.process.stdout is not None
        threading.Thread(
            target=self._relay, args=(service.name, service.process.stdout), daemon=True
        ).start()
        self._record()

    def _note_death(self, service: Service) -> None:
        assert service.process is not None
        code = service.process.returncode
        lived = time.monotonic() - service.started_at
        service.failures = 0 if lived > STEADY_S else service.failures + 1
        wait = BACKOFF_S[min(service.failures, len(BACKOFF_S)) - 1] if service.failures else 0.0
        how = f"signal {-code}" if code < 0 else f"code {code}"
        self.say(f"{service.name} ended ({how}); starting it again in {wait:g} s")
        service.process = None
        service.due_at = time.monotonic() + wait

    def _await_end(self, service: Service) -> None:
        if service.process is None or service.ref is None:
            return
        try:
            service.process.wait(STOP_GRACE_S)
        except subprocess.TimeoutExpired:
            self.say(f"{service.name} did not end in {STOP_GRACE_S:g} s; killing its group")
        processes.send(service.ref, signal.SIGKILL)  # whatever of its group is left
        service.process.wait()

    def _relay(self, name: str, output: IO[bytes]) -> None:
        for line in output:
            text = line.decode("utf-8", "replace").rstrip("\n")
            self.say(f"{prefix(name)}{printable(text)}")

    def _record(self) -> None:
        children = {s.name: s.ref for s in self.services if s.ref is not None}
        instance.write_record(self.home, children, **self.facts)


def prefix(name: str) -> str:
    """The service's name in its colour, padded; without colour where nobody sees it."""
    label = f"{name:<10} "
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return label
    colour = COLOURS[sum(name.encode()) % len(COLOURS)]
    return f"\x1b[{colour}m{label}\x1b[0m"


def printable(text: str) -> str:
    """A line without the control characters that could disturb a terminal."""
    return "".join(char for char in text if char.isprintable() or char == "\t")
