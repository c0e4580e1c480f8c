"""The Ray job that a launcher left when it was killed: what it is, and its end.

A launcher that ends in order removes its state file, so a file beside no running launcher names a
job that may still run, and write into the folders of its stage. It needs no Ray to be read.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.launchers.ray_head import RayHead
from jobs.launchers.ray_jobs import RUNS, RayJobs
from trainer.files import read_json

POLL_S = 0.5
#: Ray kills an entry point six seconds after it was asked to end (``ray_run.STOP_WAIT``)
ENDS_WITHIN_S = 30.0


class StillRuns(RuntimeError):
    """The job was asked to end, and did not."""


@dataclass(frozen=True, slots=True)
class LeftJob:
    """A job by its submission id, and the address of its job server."""

    name: str
    address: str


def state_file(round_folder: Path, command: str) -> Path:
    """Where the launcher of a round's command remembers its job."""
    return round_folder / f"ray-job-{command}.json"


def left_job(state: Path) -> LeftJob | None:
    """The job that a state file names. Raises InputError for a damaged file."""
    known = _known(state)
    name = known.get("submission_id")
    return None if name is None else LeftJob(str(name), str(known["address"]))


def end_left(state: Path, say: Callable[[str], object]) -> None:
    """End the job that a state file names, and the head that was started for it.

    Raises JobServerGone when a cluster that is not ours cannot be asked, StillRuns, and InputError
    for a damaged file.
    """
    known, left = _known(state), left_job(state)
    head = RayHead.from_json(known["head"]) if known.get("head") else None
    if left is not None and (head is None or head.alive()):
        _end(RayJobs(left.address if head is None else head.address), left, say)
    if head is not None:
        head.stop()
    state.unlink(missing_ok=True)


def _end(jobs: RayJobs, left: LeftJob, say: Callable[[str], object]) -> None:
    deadline = time.monotonic() + ENDS_WITHIN_S
    if (state := jobs.status(left.name).state) not in RUNS:
        say(f"job {left.name} no longer runs: {state}")
        return
    say(f"stopping job {left.name} at {left.address}")
    jobs.stop(left.name)
    while jobs.status(left.name).state in RUNS:
        if time.monotonic() > deadline:
            raise StillRuns(
                f"job {left.name} at {left.address} did not end within {ENDS_WITHIN_S:.0f} s: stop "
                "it there, then try again"
            )
        time.sleep(POLL_S)


def _known(state: Path) -> dict[str, Any]:
    return dict(read_json(state)) if state.is_file() else {}
