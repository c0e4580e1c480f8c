"""The cores of this machine that a process may use."""

from __future__ import annotations

import os


def cores() -> int:
    """Those that the process is bound to, where the system can tell; else all."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
