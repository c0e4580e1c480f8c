"""Long work in its own session: start it, find it again after a restart, end it as a group.

A process is identified by its pid and the moment it started, as the kernel counts it, so neither a
reused pid nor a jump of the clock can make a stranger look like ours. The group's leader is the
keeper (``keeper.py``), which writes how the command ended; the group is over when no member is
left.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

KEEPER = Path(__file__).with_name("keeper.py")
STOP_GRACE_S = 8.0
POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class ProcessRef:
    """A started process group: enough to recognise it later. ``started`` is a start token."""

    pid: int
    pgid: int
    started: str


@dataclass(frozen=True, slots=True)
class Exit:
    """How a command ended: ``code``, or the name of the signal that killed it."""

    code: int | None
    signal: str | None
    peak_memory_bytes: int | None


def start_token(pid: int) -> str:
    """When ``pid`` started, in words that no other process on this machine can repeat; "" if gone.

    On Linux the clock ticks since boot and the boot's own id; elsewhere the start time.
    """
    return _linux_token(pid) if Path("/proc/self/stat").exists() else _portable_token(pid)


def _linux_token(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:
        return ""
    fields = stat[stat.rindex(")") + 2 :].split()  # the name in brackets may hold anything
    return "" if fields[0] in "ZX" else f"boot:{boot[:8]}:{fields[19]}"


def _portable_token(pid: int) -> str:
    try:
        process = psutil.Process(pid)
        zombie = process.status() == psutil.STATUS_ZOMBIE
        return "" if zombie else f"time:{process.create_time():.2f}"
    except psutil.Error:
        return ""


def is_same(pid: int | None, started: str) -> bool:
    """Whether the process that was ``pid`` with this start token still lives (zombies do not)."""
    return bool(pid) and bool(started) and start_token(pid or 0) == started


def start(
    argv: Sequence[str],
    *,
    cwd: Path,
    log: Path,
    exit_file: Path,
    register: Callable[[ProcessRef], None],
    results: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> ProcessRef:
    """Start ``argv`` under a keeper in a new session; its output is appended to ``log``.

    With ``results`` only its messages go to the log, and its standard output there, written anew.
    ``register`` is called before the command runs and shall put the group on record. If it raises,
    or this process dies meanwhile, the command never runs.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    exit_file.unlink(missing_ok=True)
    with log.open("ab") as messages, results.open("wb") if results else log.open("ab") as output:
        keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", str(KEEPER), str(exit_file), "--", *argv],
            cwd=cwd,
            env=dict(os.environ if env is None else env),
            stdin=subprocess.PIPE,
            bufsize=0,  # else a failed write would be tried again on closing, and raise there
            stdout=output,
            stderr=messages,
            start_new_session=True,
        )
    ref = ProcessRef(keeper.pid, keeper.pid, start_token(keeper.pid))
    assert keeper.stdin is not None
    with keeper.stdin as go:
        try:
            register(ref)
        except BaseException:
            go.close()
            keeper.wait()
            raise
        with contextlib.suppress(BrokenPipeError):  # a signal was faster; the follower will see
            go.write(b"!")
    return ref


def is_alive(ref: ProcessRef) -> bool:
    """Whether any member of the group still runs."""
    if is_same(ref.pid, ref.started):
        return True
    if _of_another_boot(ref.started):  # group numbers begin anew with the machine
        return False
    if start_token(ref.pid):  # the pid was given to somebody else, so our group is gone
        return False
    return bool(_members(ref.pgid))


def _of_another_boot(token: str) -> bool:
    boot = token.rpartition(":")[0]
    return token.startswith("boot:") and boot != start_token(os.getpid()).rpartition(":")[0]


def listens(ref: ProcessRef, port: int) -> bool:
    """Whether any member of the group accepts connections at ``port``."""
    for pid in _members(ref.pgid):
        with contextlib.suppress(psutil.Error):
            for found in psutil.Process(pid).net_connections("tcp"):
                if found.status == psutil.CONN_LISTEN and found.laddr.port == port:
                    return True
    return False


def send(ref: ProcessRef, number: signal.Signals) -> bool:
    """Send a signal to the whole group if it is still ours; whether it was sent."""
    if not is_alive(ref):
        return False
    try:
        os.killpg(ref.pgid, number)
    except ProcessLookupError:
        return False
    return True


def end_group(ref: ProcessRef, grace_s: float | None = None) -> bool:
    """End the whole group: TERM, after ``grace_s`` KILL; whether any of it lived.

    Waits until nothing of it is left.
    """
    if not send(ref, signal.SIGTERM):
        reap(ref)
        return False
    deadline = time.monotonic() + (STOP_GRACE_S if grace_s is None else grace_s)
    while is_alive(ref):
        if time.monotonic() > deadline:
            send(ref, signal.SIGKILL)
        reap(ref)
        time.sleep(POLL_S)
    reap(ref)
    return True


def reap(ref: ProcessRef) -> None:
    """Take the exit status of a group leader that was our child, so that no zombie is left."""
    with contextlib.suppress(ChildProcessError):  # not our child if another worker started it
        os.waitpid(ref.pid, os.WNOHANG)


def exit_of(exit_file: Path) -> Exit | None:
    """What the keeper wrote, or None: the command still runs, or nobody was left to write."""
    try:
        record = json.loads(exit_file.read_text(encoding="ascii"))
    except FileNotFoundError:
        return None
    return Exit(record["code"], record["signal"], record["peak_memory_bytes"])


def _members(pgid: int) -> list[int]:
    members = []
    for pid in psutil.pids():
        try:
            if os.getpgid(pid) == pgid and os.getsid(pid) == pgid and start_token(pid):
                members.append(pid)
        except (ProcessLookupError, PermissionError):
            continue
    return members
