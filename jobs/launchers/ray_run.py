"""One Ray job as if it were a process: submit or find it, show its output, stop it, exit like it.

Run as the process of a stage, this makes a Ray job look like any other command: its output is ours,
SIGTERM stops it, its exit code is ours. If this process is killed, or a cluster that is not ours
stops answering, the job goes on; the next one started with the same state file and command finds
the job again instead of starting a second, and refuses to start beside a job of another command.
Exit codes: the job's own, 143 when it was stopped, 70 when Ray lost it or the cluster, 2 when
another job is in the way.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from jobs.launchers.ray_head import HeadFailed, RayHead, start_head
from jobs.launchers.ray_jobs import RUNS, JobServerGone, JobStatus, RayJobs
from trainer.canonical import fingerprint, safe_name
from trainer.files import read_json, write_json

EXIT_STOPPED = 143
EXIT_LOST = 70
EXIT_REFUSED = 2
POLL_S = 0.5
#: Ray gives an entry point this long between SIGTERM and SIGKILL
STOP_WAIT = {"RAY_JOB_STOP_WAIT_TIME_S": "6"}


class Output(Protocol):
    """Where a job's output goes."""

    def write(self, text: str, /) -> int: ...
    def flush(self) -> None: ...


class AnotherJob(RuntimeError):
    """A job of another command, which the state file names, has not ended."""


@dataclass(frozen=True, slots=True)
class RayJob:
    """What to run, and where. ``head`` is the command of a head to start; None uses ``address``.

    ``same`` tells the job from others where its entrypoint may change while it runs.
    """

    name: str
    entrypoint: str
    address: str
    head: Sequence[str] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    resources: Mapping[str, float] | None = None
    same: str = ""


class RayRun:
    """Follows one job from wherever it stands to its end."""

    def __init__(self, job: RayJob, state: Path, output: Output = sys.stdout) -> None:
        self.job = job
        self._state = state
        self._output = output
        self._stop = threading.Event()
        self._shown = 0

    def request_stop(self, _signal: int = 0, _frame: FrameType | None = None) -> None:
        """Ask the job to end; safe in a signal handler."""
        self._stop.set()

    def run(self) -> int:
        """Run to the end; returns the exit code. Signals SIGTERM and SIGINT stop the job."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self.request_stop)
            signal.signal(signal.SIGINT, self.request_stop)
        head: RayHead | None = None
        goes_on = False
        try:
            head = self._head()
            jobs = RayJobs(self.job.address if head is None else head.address)
            return self._follow(jobs, self._find_or_submit(jobs, head))
        except AnotherJob as error:
            goes_on = True
            self._say(str(error))
            return EXIT_REFUSED
        except JobServerGone as error:
            goes_on = head is None  # a cluster out of reach still runs its jobs
            self._say(str(error))
            return EXIT_STOPPED if self._stop.is_set() else EXIT_LOST
        except HeadFailed as error:
            self._say(str(error))
            return EXIT_STOPPED if self._stop.is_set() else EXIT_LOST
        finally:
            if not goes_on:
                if head is not None:
                    head.stop()
                self._forget()

    # --- head and job, found or made

    def _head(self) -> RayHead | None:
        if self.job.head is None:
            return None
        known = self._remembered().get("head")
        if known is not None:
            head = RayHead.from_json(known)
            if head.alive():
                self._say(f"found the Ray head at {head.address}")
                return head
        self._say(f"starting a Ray head at {self.job.address}")
        return start_head(
            self.job.head,
            self.job.address,
            log=self._state.with_suffix(".head.log"),
            environ=self.job.secrets,
            register=lambda head: self._remember(head=head.to_json()),
            should_stop=self._stop.is_set,
        )

    def _find_or_submit(self, jobs: RayJobs, head: RayHead | None) -> str:
        found = self._found(jobs, head)
        if found is not None:
            self._say(f"found job {found}")
            return found
        submission_id = f"{safe_name(self.job.name)}-{int(time.time() * 1000):x}"
        self._remember(submission_id=submission_id, command_sha256=self._command())
        # A head of our own hands its environment on; Ray shows a job's record to its dashboard.
        secrets = {} if head is not None else self.job.secrets
        environment = {**STOP_WAIT, **self.job.environment, **secrets}
        made = jobs.submit(
            self.job.entrypoint,
            submission_id,
            environment=environment,
            resources=self.job.resources,
        )
        self._say(f"submitted job {made} to {self.job.address}")
        return made

    def _found(self, jobs: RayJobs, head: RayHead | None) -> str | None:
        """The job of this command that an earlier launcher left, running or well ended.

        Raises AnotherJob when a job of another command, or on another cluster, still runs.
        """
        known = self._remembered()
        submission_id = known.get("submission_id")
        if submission_id is None:
            return None
        here = head is not None or known["address"] == self.job.address
        try:
            state = (jobs if here else RayJobs(known["address"])).status(submission_id).state
        except JobServerGone:
            if here:
                raise
            self._say(f"{known['address']} is gone, and job {submission_id} with it")
            return None
        same = known.get("command_sha256") == self._command()
        if here and same and state in RUNS | {"succeeded"}:
            return str(submission_id)
        if state in RUNS:
            raise AnotherJob(
                f"job {submission_id} at {known['address']} still runs and writes the same "
                f"folders: follow it with the command that started it ({self._state}), or stop it: "
                f"python -m jobs.launchers.ray_job stop {submission_id} "
                f"--address {known['address']}"
            )
        return None

    def _command(self) -> str:
        return fingerprint([self.job.name, self.job.same or self.job.entrypoint])

    # --- until it ends

    def _follow(self, jobs: RayJobs, submission_id: str) -> int:
        ended = threading.Event()
        tail = threading.Thread(
            target=self._show, args=(jobs, submission_id, ended), name="tail", daemon=True
        )
        tail.start()
        asked = False
        status = jobs.status(submission_id)
        while not status.ended and status.state != "unknown":
            if self._stop.is_set() and not asked:
                asked = True
                self._say(f"stopping job {submission_id}")
                jobs.stop(submission_id)
            if asked:
                time.sleep(POLL_S / 2)
            else:
                self._stop.wait(POLL_S)
            status = jobs.status(submission_id)
        ended.set()
        tail.join(timeout=2)
        with contextlib.suppress(JobServerGone, RuntimeError):
            self._show_rest(jobs.logs(submission_id))
        return self._exit_code(submission_id, status)

    def _exit_code(self, submission_id: str, status: JobStatus) -> int:
        if status.state == "succeeded":
            return 0
        if status.state == "stopped" or (self._stop.is_set() and status.exit_code is None):
            self._say(f"job {submission_id} was stopped")
            return EXIT_STOPPED
        if status.exit_code is not None:
            self._say(f"job {submission_id} ended with exit code {status.exit_code}")
            # A negative code is a signal; SIGTERM is how a stop looks from outside.
            return status.exit_code if status.exit_code >= 0 else 128 - status.exit_code
        reason = status.message.splitlines()[0] if status.message else "Ray does not say why"
        self._say(f"job {submission_id} was lost: {reason}")
        return EXIT_LOST

    def _show(self, jobs: RayJobs, submission_id: str, ended: threading.Event) -> None:
        """Copy the job's output; connect again when the connection breaks."""

        async def copy() -> None:
            seen = 0
            async for text in jobs.tail(submission_id):
                seen += len(text)
                fresh = text[max(0, len(text) - (seen - self._shown)) :]
                if seen > self._shown:
                    self._write(fresh)
                    self._shown = seen

        while not ended.is_set():
            with contextlib.suppress(Exception):  # the rest is fetched once the job has ended
                asyncio.run(copy())
            ended.wait(1.0)

    def _show_rest(self, everything: str) -> None:
        if len(everything) > self._shown:
            self._write(everything[self._shown :])
            self._shown = len(everything)

    # --- what is remembered, what is said

    def _remembered(self) -> dict[str, Any]:
        return dict(read_json(self._state)) if self._state.is_file() else {}

    def _remember(self, **values: Any) -> None:
        write_json(self._state, {**self._remembered(), "address": self.job.address, **values})

    def _forget(self) -> None:
        self._state.unlink(missing_ok=True)

    def _write(self, text: str) -> None:
        self._output.write(text)
        self._output.flush()

    def _say(self, text: str) -> None:
        self._write(f"[ray] {text}\n")
