"""The reconciler: lost jobs come back, processes are adopted, the vanished are lost."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from intraskill_web.core.models import AuditEvent
from intraskill_web.experiments.models import Attempt, Experiment, Stage
from intraskill_web.experiments.moves import move
from intraskill_web.experiments.services import start_round, stop_round
from jobs import park, process, queue, reconcile
from jobs.invoke import exit_file
from jobs.runner import _Run, run_attempt
from jobs.transitions import State

Jobs = list[tuple[int, str]]
LONG_AGO = timedelta(minutes=5)


@pytest.fixture
def attempt(experiment: Experiment, handed_in: Jobs, scripted: Callable[..., None]) -> Attempt:
    scripted(pause=30.0)
    start_round(experiment)
    return Attempt.objects.select_related("stage").get(pk=handed_in[0][0])


@pytest.fixture
def running(attempt: Attempt) -> Iterator[tuple[Attempt, process.ProcessRef]]:
    """An attempt whose process runs and whose watcher died."""
    Attempt.objects.update(host=settings.INTRASKILL_HOST_NAME)
    run = _Run.of(attempt, attempt.job_id)
    assert run._begin()
    ref = run._start(run.commands[0], exit_file(run.attempt, run.commands[0]))
    assert ref is not None
    with_dead_watcher(attempt)
    attempt.refresh_from_db()
    yield attempt, ref
    kill(ref)


def kill(ref: process.ProcessRef) -> None:
    process.send(ref, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while process.is_alive(ref):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.reap(ref)


def with_dead_watcher(attempt: Attempt) -> None:
    settle(attempt, watcher_pid=2**22 - 1, watcher_started="boot:00000000:1")


def settle(attempt: Attempt, **fields: object) -> None:
    """As if the last change was long ago, and the job long taken out of the queue."""
    queue.withdraw(attempt.job_id)
    Attempt.objects.filter(pk=attempt.pk).update(updated_at=timezone.now() - LONG_AGO, **fields)
    attempt.refresh_from_db()


def test_a_job_that_the_queue_lost_is_handed_in_again(attempt: Attempt, handed_in: Jobs) -> None:
    settle(attempt)
    reconcile.reconcile()
    attempt.refresh_from_db()
    assert attempt.executions == 2
    assert handed_in[-1] == (attempt.pk, attempt.job_id)
    assert run_attempt_is_superseded(handed_in[0])


def run_attempt_is_superseded(job: tuple[int, str]) -> bool:
    return run_attempt(*job) == "superseded"


def test_what_waits_in_the_queue_is_left_alone(attempt: Attempt, handed_in: Jobs) -> None:
    Attempt.objects.update(updated_at=timezone.now() - LONG_AGO)
    reconcile.reconcile()
    assert len(handed_in) == 1


def test_what_changed_a_moment_ago_is_left_alone(attempt: Attempt, handed_in: Jobs) -> None:
    queue.withdraw(attempt.job_id)
    reconcile.reconcile()
    assert len(handed_in) == 1


def test_a_running_process_without_a_watcher_gets_a_new_one(
    running: tuple[Attempt, process.ProcessRef], handed_in: Jobs
) -> None:
    attempt, ref = running
    reconcile.reconcile()
    attempt.refresh_from_db()
    assert (attempt.state, attempt.executions) == (State.RUNNING, 2)
    assert process.is_alive(ref)
    reconcile.reconcile()
    assert len(handed_in) == 2, "the adoption waits already"


def test_a_watched_process_is_left_alone(
    running: tuple[Attempt, process.ProcessRef], handed_in: Jobs
) -> None:
    attempt, _ref = running
    watcher = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        token = process.start_token(watcher.pid)
        settle(attempt, watcher_pid=watcher.pid, watcher_started=token)
        reconcile.reconcile()
        assert len(handed_in) == 1
    finally:
        watcher.kill()
        watcher.wait()


def test_a_process_that_vanished_is_lost_and_goes_on_as_a_new_attempt(
    running: tuple[Attempt, process.ProcessRef], handed_in: Jobs
) -> None:
    attempt, ref = running
    kill(ref)
    reconcile.reconcile()
    attempt.refresh_from_db()
    assert attempt.state == State.LOST
    assert attempt.error == "the process and its watcher vanished"
    following = Attempt.objects.get(stage=attempt.stage, number=2)
    assert following.state == State.QUEUED
    assert handed_in[-1][0] == following.pk
    actions = list(AuditEvent.objects.order_by("id").values_list("action", flat=True))
    assert actions[-2:] == ["attempt.lost", "stage.resume"]


def test_processes_of_other_hosts_are_not_judged(
    running: tuple[Attempt, process.ProcessRef], handed_in: Jobs
) -> None:
    attempt, ref = running
    kill(ref)
    settle(attempt, host="another-host")
    reconcile.reconcile()
    attempt.refresh_from_db()
    assert attempt.state == State.RUNNING
    assert len(handed_in) == 1


def test_a_stopping_attempt_that_vanished_is_lost_and_stays_stopped(
    running: tuple[Attempt, process.ProcessRef], handed_in: Jobs
) -> None:
    attempt, ref = running
    stop_round(attempt.stage.round.experiment)
    kill(ref)
    settle(attempt)
    reconcile.reconcile()
    attempt.refresh_from_db()
    assert (attempt.state, attempt.stop_reason) == (State.LOST, "operator")
    assert len(handed_in) == 1, "nobody asked to go on"


def test_a_failure_by_signal_goes_on_and_a_failure_by_error_waits_for_people(
    attempt: Attempt, handed_in: Jobs
) -> None:
    move(attempt, State.FAILED, exit_code=2, error="bad input")
    reconcile.reconcile()
    assert len(handed_in) == 1
    Attempt.objects.update(exit_code=None, signal="SIGKILL")
    reconcile.reconcile()
    assert len(handed_in) == 2


def test_ten_fruitless_attempts_are_enough(attempt: Attempt, handed_in: Jobs) -> None:
    for _ in range(20):
        latest = Attempt.objects.filter(stage=attempt.stage).latest("number")
        if latest.state == State.QUEUED:
            move(latest, State.FAILED, signal="SIGKILL")
        reconcile.reconcile()
    assert Attempt.objects.filter(stage=attempt.stage).count() == 10


def test_progress_buys_new_attempts(attempt: Attempt, handed_in: Jobs) -> None:
    for done in range(1, 21):
        Stage.objects.filter(pk=attempt.stage_id).update(done=done)
        latest = Attempt.objects.filter(stage=attempt.stage).latest("number")
        move(latest, State.FAILED, signal="SIGKILL")
        reconcile.reconcile()
    assert Attempt.objects.filter(stage=attempt.stage).count() == 21


def test_a_shutdown_parks_and_the_next_start_continues(
    attempt: Attempt, handed_in: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(park, "WAIT_S", 0.0)
    move(attempt, State.STARTING, host=settings.INTRASKILL_HOST_NAME)
    assert park.park() == 1, "its watcher has not ended it yet"
    attempt.refresh_from_db()
    assert (attempt.state, attempt.stop_reason) == (State.STOPPING, "shutdown")
    move(attempt, State.STOPPED)
    reconcile.reconcile()
    assert Attempt.objects.get(stage=attempt.stage, number=2).state == State.QUEUED


def test_a_stop_by_an_operator_stays_stopped(attempt: Attempt, handed_in: Jobs) -> None:
    stop_round(attempt.stage.round.experiment)
    reconcile.reconcile()
    attempt.stage.refresh_from_db()
    assert attempt.stage.state == State.STOPPED
    assert len(handed_in) == 1


def test_a_stage_that_nobody_followed_up_is_followed_up(attempt: Attempt, handed_in: Jobs) -> None:
    for state in (State.STARTING, State.RUNNING, State.SUCCEEDED):
        move(attempt, state)
    reconcile.reconcile()
    following = Attempt.objects.get(pk=handed_in[-1][0])
    assert following.stage.kind == "train"
