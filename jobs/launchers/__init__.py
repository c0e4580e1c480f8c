"""How a stage's command is started: as it is, or as a job of a Ray cluster.

Which one is a fact of the host: a worker whose environment names ``INTRASKILL_RAY_ADDRESS`` hands
training to that cluster (``local`` starts a head of its own). Everything else about the stage stays
the same, because a followed Ray job looks like a local process. This module imports neither Ray nor
Django.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ADDRESS = "INTRASKILL_RAY_ADDRESS"
LOCAL = "local"
LOCAL_ADDRESS = "http://127.0.0.1:8265"
#: what a job needs of the environment a local process would have inherited
PASSED_ON = ("PYTHONUNBUFFERED", "PYTHONHASHSEED", "OMP_NUM_THREADS")


def command_line(
    argv: Sequence[str],
    *,
    stage: str,
    name: str,
    state: Path,
    cwd: Path,
    environ: Mapping[str, str],
) -> list[str]:
    """The command to start for ``argv``. Only training goes to a cluster.

    ``state`` is the file by which a second start finds the job of a first one that was killed.
    """
    address = environ.get(ADDRESS, "")
    if not address or stage != "train":
        return list(argv)
    head = ["--start-head"] if address == LOCAL else []
    passed = [f"{key}={environ[key]}" for key in PASSED_ON if key in environ]
    return [
        *(sys.executable, "-m", "jobs.launchers.ray_job", "run"),
        *("--address", LOCAL_ADDRESS if address == LOCAL else address, *head),
        *("--name", name, "--state", str(state), "--cwd", str(cwd)),
        *(text for pair in passed for text in ("--env", pair)),
        *("--", *argv),
    ]
