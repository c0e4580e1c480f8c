"""A trainer that belongs to one job and ends with it: for work that goes on where its files end."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from django.conf import settings

from jobs.environment import for_trainer

PR_SET_PDEATHSIG = 1


def belonging(lock: int) -> dict[str, Any]:
    """Arguments for ``subprocess``: in our folder and environment, ending with this process.

    On Linux the kernel kills it when this process dies. Everywhere it shares the ``lock``
    (``trainer.lock.exclusive``), which is free only when both are gone.
    """
    return {
        "cwd": settings.BASE_DIR,
        "env": for_trainer(),
        "stdin": subprocess.DEVNULL,
        "pass_fds": (lock,),
        "preexec_fn": _ends_with(os.getpid()) if sys.platform == "linux" else None,
    }


def _ends_with(parent: int) -> Callable[[], None]:
    return partial(_die_with, ctypes.CDLL(None).prctl, parent)


def _die_with(prctl: Callable[[int, int], int], parent: int) -> None:
    """Runs between fork and exec; a job has no other threads."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)
