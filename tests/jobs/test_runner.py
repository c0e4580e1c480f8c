"""An attempt from the queue to its end: success, failure, incompleteness, stopping, taking over."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from intraskill_web.experiments.models import Attempt, Experiment, Stage
from intraskill_web.experiments.services import resume_round, start_round, stop_round
from jobs import mirror, process, watch
from jobs.invoke import exit_file
from jobs.runner import _Run, run_attempt
from jobs.transitions import RoundState, State

Scripted = Callable[..., None]
Jobs = list[tuple[int, str]]


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "POLL_S", 0.02)
    monkeypatch.setattr(watch, "HEARTBEAT_S", 0.05)


def stage_of(experiment: Experiment, kind: str = "freeze") -> Stage:
    return Stage.objects.get(round__experiment=experiment, round__number=0, kind=kind)


def at_each_beat(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do something from inside the watched loop: an in-memory database has only one thread."""
    original = watch.Watch._write_signs

    def write_signs(self: watch.Watch) -> None:
        act()
        original(self)

    monkeypatch.setattr(watch.Watch, "_write_signs", write_signs)


def until_file(path: Path) -> None:
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.02)


def test_a_stage_succeeds_and_hands_in_the_next(
    experiment: Experiment, handed_in: Jobs, scripted: Scripted
) -> None:
    scripted()
    start_round(experiment)
    assert run_attempt(*handed_in[0]) == State.SUCCEEDED
    stage = stage_of(experiment)
    assert (stage.state, stage.done, stage.total, stage.unit) == ("succeeded", 5, 5, "number")
    assert stage.outcome == {"counted": 5}
    attempt = stage.attempts.get()
    assert attempt.exit_code == 0 and attempt.peak_memory_bytes
    assert attempt.environment["packages"]["django"]
    assert attempt.log_file.read_text() == "counted all\n", "messages only"
    assert attempt.log_file.with_suffix(".count.out").read_text() == '{"counted": 5}\n'
    following = Attempt.objects.get(pk=handed_in[1][0])
    assert (following.stage.kind, following.state) == ("train", State.QUEUED)


def test_all_rounds_run_by_themselves_to_the_end(
    experiment: Experiment, handed_in: Jobs, scripted: Scripted
) -> None:
    scripted()
    start_round(experiment)
    for job in handed_in:  # grows while it is walked
        assert run_attempt(*job) == State.SUCCEEDED
    assert len(handed_in) == 2 * 6
    experiment.refresh_from_db()
    assert experiment.state == "succeeded"
    assert [round_.state for round_ in experiment.rounds.all()] == ["succeeded", "succeeded"]


def test_a_stage_without_commands_only_publishes(
    experiment: Experiment, handed_in: Jobs, scripted: Scripted
) -> None:
    scripted(
        commands=lambda _plan: (), yields=lambda _plan: (), publish=lambda _stage, _plan: {"ok": 1}
    )
    start_round(experiment)
    assert run_attempt(*handed_in[0]) == State.SUCCEEDED
    assert stage_of(experiment).outcome == {"ok": 1}


def test_a_pause_lets_the_stage_finish_and_starts_no_other(
    experiment: Experiment, handed_in: Jobs, scripted: Scripted
) -> None:
    scripted()
    start_round(experiment)
    Experiment.objects.update(pause_after_stage=True)
    assert run_attempt(*handed_in[0]) == State.SUCCEEDED
    assert len(handed_in) == 1
    resume_round(experiment)
    assert len(handed_in) == 2


def test_exit_code_1_is_incomplete_and_says_what_is_missing(
    experiment: Experiment, handed_in: Jobs, scripted: Scripted
) -> None:
    scripted(source="raise SystemExit('incomplete: 3 of 5 tasks were scored')")
    start_round(experiment)
    assert run_attempt(*handed_in[0]) == State.INCOMPLETE
    assert stage_of(experiment).message == "incomplete: 3 of 5 tasks were scored"
    assert len(handed_in) == 1


def test_an_incomplete_result_in_json_says_how_much_there_is(
    experiment: Experiment, handed_in: Jobs, scripted: Scripted
) -> None:
    counts = '{{"counts": {{"completed": 38, "requested": 40}}}}'
    scripted(source=f"print({counts!r}); raise SystemExit(1)")
    start_round(experiment)
    assert run_attempt(*handed_in[0]) == State.INCOMPLETE
    assert stage_of(experiment).message == "38 of 40 episodes were completed"


def test_a_failure_keeps_code_and_last_line(
    experiment: Experiment, handed_in: Jobs, scripted: Scripted
) -> None:
    said = "print('error: bank.json: no such file', file=sys.stderr)"
    scripted(source=f"import sys; {said}; raise SystemExit(2)")
    start_round(experiment)
    assert run_attempt(*handed_in[0]) == State.FAILED
    attempt = stage_of(experiment).attempts.get()
    assert attempt.exit_code == 2
    assert attempt.error == "count: exit code 2: error: bank.json: no such file"
    experiment.refresh_from_db()
    assert experiment.state == "failed"


def test_a_kill_is_recorded_by_the_name_of_its_signal(
    experiment: Experiment, handed_in: Jobs, scripted: Scripted
) -> None:
    scripted(source="import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    start_round(experiment)
    assert run_attempt(*handed_in[0]) == State.FAILED
    attempt = stage_of(experiment).attempts.get()
    assert (attempt.signal, attempt.exit_code) == ("SIGKILL", None)
    assert "out of memory?" in attempt.error


def test_what_a_killed_command_had_started_ends_with_its_attempt(
    experiment: Experiment, handed_in: Jobs, scripted: Scripted
) -> None:
    scripted(
        source="import os, signal, subprocess; subprocess.Popen(['sleep', '61']); "
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    start_round(experiment)
    begun = time.monotonic()
    assert run_attempt(*handed_in[0]) == State.FAILED
    attempt = Attempt.objects.get(pk=handed_in[0][0])
    assert attempt.signal == "SIGKILL" and time.monotonic() - begun < 30
    ref = process.ProcessRef(attempt.pid or 0, attempt.pgid or 0, attempt.process_started)
    assert not process.is_alive(ref)


def test_missing_inputs_fail_before_anything_is_spent(
    experiment: Experiment, handed_in: Jobs, scripted: Scripted
) -> None:
    scripted(needs=lambda plan: (plan.folder / "never.json",))
    start_round(experiment)
    assert run_attempt(*handed_in[0]) == State.FAILED
    attempt = stage_of(experiment).attempts.get()
    assert attempt.error == "missing: round-000/never.json"
    assert attempt.pid is None


def test_work_without_its_yield_is_incomplete(
    experiment: Experiment, handed_in: Jobs, scripted: Scripted
) -> None:
    scripted(source="pass")
    start_round(experiment)
    assert run_attempt(*handed_in[0]) == State.INCOMPLETE
    assert "not made: round-000/scripted/freeze/result.json" in stage_of(experiment).message


def test_an_error_while_publishing_fails_the_attempt_with_its_traceback(
    experiment: Experiment, handed_in: Jobs, scripted: Scripted
) -> None:
    def publish(_stage: object, _plan: object) -> dict[str, object]:
        raise ValueError("the summary has no primary section")

    scripted(publish=publish)
    start_round(experiment)
    with pytest.raises(ValueError, match="primary"):
        run_attempt(*handed_in[0])
    attempt = stage_of(experiment).attempts.get()
    assert attempt.state == State.FAILED
    assert "Traceback" in attempt.error
    assert stage_of(experiment).message == "ValueError: the summary has no primary section"


def test_a_stop_ends_the_group_and_a_resume_comes_to_the_same_result(
    experiment: Experiment,
    handed_in: Jobs,
    scripted: Scripted,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scripted(pause=0.3)
    start_round(experiment)
    folder = experiment.folder / "round-000" / "scripted" / "freeze"
    wanted = [True]
    at_each_beat(
        monkeypatch,
        lambda: wanted and (folder / "counted.jsonl").exists() and stop_round(experiment),
    )
    assert run_attempt(*handed_in[0]) == State.STOPPED
    attempt = Attempt.objects.get(pk=handed_in[0][0])
    assert attempt.stop_reason == "operator"
    assert not process.start_token(attempt.pid or 0)
    assert not (folder / "result.json").exists()
    wanted.clear()
    resume_round(experiment)
    assert run_attempt(*handed_in[1]) == State.SUCCEEDED
    assert (folder / "counted.jsonl").read_text() == "".join(
        f'{{"number":{number}}}\n' for number in range(5)
    )


def test_a_stop_while_waiting_in_the_queue_takes_effect_at_once(
    experiment: Experiment, handed_in: Jobs, scripted: Scripted
) -> None:
    scripted()
    start_round(experiment)
    assert stop_round(experiment)
    assert stage_of(experiment).state == State.STOPPED
    assert run_attempt(*handed_in[0]) == "superseded"
    assert stage_of(experiment).state == State.STOPPED


def test_a_new_watcher_adopts_the_running_process(
    experiment: Experiment, handed_in: Jobs, scripted: Scripted
) -> None:
    scripted(pause=0.2)
    start_round(experiment)
    attempt_id, job_id = handed_in[0]
    # what a killed worker leaves: a started process, on record, without a watcher
    attempt = Attempt.objects.get(pk=attempt_id)
    run = _Run.of(attempt, job_id)
    assert run._begin()
    ends = exit_file(run.attempt, run.commands[0])
    ref = run._start(run.commands[0], ends)
    assert ref is not None and process.is_alive(ref)
    assert run_attempt(attempt_id, job_id) == State.SUCCEEDED
    attempt.refresh_from_db()
    assert attempt.pid == ref.pid, "the process was adopted, not started again"
    assert attempt.log_file.read_text() == "counted all\n"


def test_a_superseded_watcher_writes_nothing_more(
    experiment: Experiment, handed_in: Jobs, scripted: Scripted
) -> None:
    scripted()
    start_round(experiment)
    attempt_id, _job_id = handed_in[0]
    assert run_attempt(attempt_id, "another-job") == "superseded"
    attempt = Attempt.objects.get(pk=attempt_id)
    assert (attempt.state, attempt.watcher_pid) == (State.QUEUED, None)


def test_a_command_that_ended_while_nobody_watched_counts(
    experiment: Experiment, handed_in: Jobs, scripted: Scripted
) -> None:
    scripted()
    start_round(experiment)
    attempt_id, job_id = handed_in[0]
    attempt = Attempt.objects.get(pk=attempt_id)
    run = _Run.of(attempt, job_id)
    assert run._begin()
    ref = run._start(run.commands[0], exit_file(run.attempt, run.commands[0]))
    assert ref is not None
    until_file(exit_file(run.attempt, run.commands[0]))
    until = time.monotonic() + 20
    while process.is_alive(ref):
        assert time.monotonic() < until
        process.reap(ref)
    assert run_attempt(attempt_id, job_id) == State.SUCCEEDED
    attempt.refresh_from_db()
    assert attempt.pid == ref.pid


def test_sigkill_comes_after_the_grace_when_a_process_ignores_sigterm(
    experiment: Experiment,
    handed_in: Jobs,
    scripted: Scripted,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "STOP_GRACE_S", 0.2)
    scripted(
        source="import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    )
    start_round(experiment)
    sent: list[signal.Signals] = []
    real = process.send

    def send(ref: process.ProcessRef, number: signal.Signals) -> bool:
        sent.append(number)
        return real(ref, number)

    monkeypatch.setattr(process, "send", send)
    beats = iter(range(1000))
    at_each_beat(monkeypatch, lambda: next(beats) == 5 and stop_round(experiment))
    assert run_attempt(*handed_in[0]) == State.STOPPED
    assert sent[0] is signal.SIGTERM and signal.SIGKILL in sent


def test_a_stop_that_the_work_was_faster_than_holds_what_follows(
    experiment: Experiment,
    handed_in: Jobs,
    scripted: Scripted,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scripted()
    start_round(experiment)
    real = mirror.follow

    def follow(*arguments: Any) -> None:
        real(*arguments)
        if stage_of(experiment).state == State.RUNNING and folder_is_done(experiment):
            stop_round(experiment)

    monkeypatch.setattr(mirror, "follow", follow)
    assert run_attempt(*handed_in[0]) in (State.SUCCEEDED, State.STOPPED)
    experiment.refresh_from_db()
    assert experiment.state == RoundState.STOPPED
    assert len(handed_in) == 1, "nothing follows a stop"
    resume_round(experiment)
    assert len(handed_in) == 2


def folder_is_done(experiment: Experiment) -> bool:
    return any(experiment.folder.glob("round-000/scripted/*/result.json"))
