"""Process groups: started, recognised, ended, and never mistaken for somebody else's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs import process

WAIT_S = 20.0


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


def start(
    folder: Path, script: str, register: Callable[[process.ProcessRef], None] = lambda ref: None
) -> process.ProcessRef:
    return process.start(
        [sys.executable, "-c", script],
        cwd=folder,
        log=folder / "log",
        exit_file=folder / "exit",
        register=register,
    )


def end(ref: process.ProcessRef) -> None:
    process.send(ref, signal.SIGKILL)
    until(lambda: not process.is_alive(ref))
    process.reap(ref)


def test_a_command_leaves_its_output_and_its_exit_code(tmp_path: Path) -> None:
    ref = start(tmp_path, "print('hello'); raise SystemExit(3)")
    until(lambda: not process.is_alive(ref))
    assert process.exit_of(tmp_path / "exit") is not None
    ended = process.exit_of(tmp_path / "exit")
    assert ended is not None and (ended.code, ended.signal) == (3, None)
    assert ended.peak_memory_bytes and ended.peak_memory_bytes > 2**20
    assert (tmp_path / "log").read_text() == "hello\n"


def test_a_killed_command_is_recorded_with_the_name_of_the_signal(tmp_path: Path) -> None:
    ref = start(tmp_path, "import os; print(os.getpid(), flush=True); import time; time.sleep(60)")
    until(lambda: (tmp_path / "log").read_text().strip())
    os.kill(int((tmp_path / "log").read_text()), signal.SIGKILL)
    until(lambda: process.exit_of(tmp_path / "exit"))
    ended = process.exit_of(tmp_path / "exit")
    assert ended is not None and (ended.code, ended.signal) == (None, "SIGKILL")
    until(lambda: not process.is_alive(ref))


def test_sigterm_reaches_the_command_and_the_keeper_still_writes(tmp_path: Path) -> None:
    script = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
        "print('ready', flush=True); time.sleep(60)"
    )
    ref = start(tmp_path, script)
    until(lambda: (tmp_path / "log").read_text().strip())
    assert process.send(ref, signal.SIGTERM)
    until(lambda: process.exit_of(tmp_path / "exit"))
    ended = process.exit_of(tmp_path / "exit")
    assert ended is not None and ended.code == 143
    until(lambda: not process.is_alive(ref))


def test_killing_the_group_ends_grandchildren_too(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(child.pid, flush=True); time.sleep(60)"
    )
    ref = start(tmp_path, script)
    until(lambda: (tmp_path / "log").read_text().strip())
    grandchild = int((tmp_path / "log").read_text())
    end(ref)
    until(lambda: not process.start_token(grandchild))


def test_a_group_without_its_leader_still_counts_as_alive(tmp_path: Path) -> None:
    ref = start(tmp_path, "import time; print('up', flush=True); time.sleep(60)")
    until(lambda: (tmp_path / "log").read_text().strip())
    os.kill(ref.pid, signal.SIGKILL)  # the keeper alone
    until(lambda: not process.start_token(ref.pid))
    assert process.is_alive(ref)
    end(ref)
    assert process.exit_of(tmp_path / "exit") is None


def test_a_reused_pid_is_not_taken_for_ours() -> None:
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        ref = process.ProcessRef(stranger.pid, stranger.pid, "boot:00000000:1")
        assert not process.is_alive(ref)
        assert not process.send(ref, signal.SIGKILL)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_zombie_is_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    until(lambda: not process.start_token(child.pid))
    child.wait()


def test_nothing_runs_when_it_cannot_be_put_on_record(tmp_path: Path) -> None:
    def refuse(_ref: process.ProcessRef) -> None:
        raise RuntimeError("the row is gone")

    with pytest.raises(RuntimeError):
        start(tmp_path, "open('ran', 'w')", register=refuse)
    assert not (tmp_path / "ran").exists()
    assert process.exit_of(tmp_path / "exit") is None


def test_a_keeper_killed_while_it_is_put_on_record_is_found_dead(tmp_path: Path) -> None:
    def kill(ref: process.ProcessRef) -> None:
        os.kill(ref.pid, signal.SIGKILL)
        until(lambda: not process.is_same(ref.pid, ref.started))

    ref = start(tmp_path, "open('ran', 'w')", kill)
    assert not process.is_alive(ref)
    assert process.exit_of(tmp_path / "exit") is None
    assert not (tmp_path / "ran").exists()


def test_nothing_runs_when_the_starter_dies_before_the_record(tmp_path: Path) -> None:
    script = f"""
import os, sys
from pathlib import Path
from jobs import process
folder = Path({str(tmp_path)!r})
process.start([sys.executable, "-c", "open('ran', 'w')"], cwd=folder, log=folder / "log",
              exit_file=folder / "exit", register=lambda ref: (
                  (folder / "ref").write_text(str(ref.pid)), os.kill(os.getpid(), 9)))
"""
    died = subprocess.run([sys.executable, "-c", script], check=False)
    assert died.returncode == -signal.SIGKILL
    keeper = int((tmp_path / "ref").read_text())
    until(lambda: not process.start_token(keeper))
    assert not (tmp_path / "ran").exists()


def test_the_child_survives_the_death_of_its_starter(tmp_path: Path) -> None:
    script = f"""
import os, sys
from pathlib import Path
from jobs import process
folder = Path({str(tmp_path)!r})
ref = process.start([sys.executable, "-c", "import time; time.sleep(0.5); print('done')"],
                    cwd=folder, log=folder / "log", exit_file=folder / "exit",
                    register=lambda ref: None)
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", script], check=False)
    until(lambda: process.exit_of(tmp_path / "exit"))
    ended = process.exit_of(tmp_path / "exit")
    assert ended is not None and ended.code == 0
    assert (tmp_path / "log").read_text() == "done\n"


@pytest.mark.parametrize(("deaf", "grace_s"), [(False, 20.0), (True, 0.3)])
def test_a_group_is_asked_first_and_killed_when_it_does_not_listen(
    tmp_path: Path, deaf: bool, grace_s: float
) -> None:
    answer = "signal.SIG_IGN" if deaf else "lambda *_: sys.exit(143)"
    ref = start(
        tmp_path,
        f"import signal, sys, time\nsignal.signal(signal.SIGTERM, {answer})\n"
        "print('ready', flush=True); time.sleep(60)",
    )
    until(lambda: (tmp_path / "log").read_text().strip())
    begun = time.monotonic()
    assert process.end_group(ref, grace_s)
    took = time.monotonic() - begun
    assert not process.is_alive(ref)
    assert took >= grace_s if deaf else took < grace_s / 2
    assert not process.end_group(ref, grace_s), "nothing is left of it"
