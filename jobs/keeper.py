"""Runs one command and writes down how it ended, whoever may have died meanwhile.

``python -I -S keeper.py EXIT_FILE -- COMMAND…`` leads the process group of a stage. It waits for a
byte on its input, which is sent once the group is on record, and does nothing if its starter dies
before that: no command ever runs that nobody knows of. A worker that
is killed loses its child's exit status; this process, which outlives the worker, keeps it: code or
signal and the peak memory. It ignores the signals that are meant for the command. Standard library
only, no project imports: it starts in a few milliseconds and holds little memory.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

NOT_RELEASED = 75
FORWARDED_BY_THE_GROUP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(argv: list[str]) -> int:
    """Run the command, publish ``EXIT_FILE`` by a rename, return the command's code."""
    exit_file, separator, *command = argv
    if separator != "--" or not command:
        raise SystemExit("usage: keeper.py EXIT_FILE -- COMMAND…")
    if not sys.stdin.buffer.read(1):
        return NOT_RELEASED
    for number in FORWARDED_BY_THE_GROUP:
        signal.signal(number, signal.SIG_IGN)
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        preexec_fn=_default_signals,  # noqa: PLW1509 - there is only one thread
    )
    _pid, status, usage = os.wait4(child.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    unit = 1 if sys.platform == "darwin" else 1024
    record = {
        "code": code if code >= 0 else None,
        "signal": signal.Signals(-code).name if code < 0 else None,
        "peak_memory_bytes": usage.ru_maxrss * unit,
        "ended_at": time.time(),
    }
    partial = f"{exit_file}.{os.getpid()}.tmp"
    with open(partial, "w", encoding="ascii") as handle:  # noqa: PTH123 - no pathlib: start fast
        json.dump(record, handle)
        handle.flush()
        os.fsync(handle.fileno())
    os.replace(partial, exit_file)  # noqa: PTH105
    return code if code >= 0 else 128 - code


def _default_signals() -> None:
    for number in FORWARDED_BY_THE_GROUP:
        signal.signal(number, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
