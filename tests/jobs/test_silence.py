"""Two hosts, one of which falls silent in the middle of a stage, and may return alive."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from intraskill_web.core.models import AuditEvent
from intraskill_web.experiments.models import Attempt, Experiment
from intraskill_web.experiments.planning import pin_host
from intraskill_web.experiments.services import start_round, stop_round
from intraskill_web.monitoring.signals.evaluate import evaluate
from jobs import fence, process, queue, reconcile, silence, watch
from jobs.invoke import exit_file
from jobs.models import Host
from jobs.runner import _Run, run_attempt
from jobs.transitions import State

Jobs = list[tuple[int, str]]
HERE, THERE = "gpu-2", "gpu-1"
GPU = {"index": 0, "name": "H200", "memory_bytes": 2**37, "used_bytes": 0}


class Clock:
    """A monotonic clock that goes when it is told to."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Clock:
    """This reconciler is of ``gpu-2`` and has just been started."""
    clock = Clock()
    settings.INTRASKILL_HOST_NAME = HERE
    monkeypatch.setattr(reconcile, "_silence", silence.Silence(clock))
    monkeypatch.setattr(reconcile, "_asked_to_end", {})
    monkeypatch.setattr(watch, "POLL_S", 0.02)
    monkeypatch.setattr(watch, "HEARTBEAT_S", 0.0)
    return clock


def register(name: str) -> Host:
    return Host.objects.create(
        name=name, gpus=[GPU], workers=[{"name": f"{name}.1", "pid": 1, "started": "x"}]
    )


@pytest.fixture
def there(
    experiment: Experiment, handed_in: Jobs, scripted: Callable[..., None], settings: Any
) -> Iterator[tuple[Attempt, process.ProcessRef]]:
    """A stage that works on ``gpu-1``: a real process, whose watcher is not of this test."""
    scripted(source="import time; time.sleep(60)")
    register(THERE)
    start_round(experiment)
    attempt = Attempt.objects.select_related("stage__round__experiment").get()
    settings.INTRASKILL_HOST_NAME = THERE
    run = _Run.of(attempt, attempt.job_id)
    assert watch.adopt(attempt, attempt.job_id, worker="w", pid=2**22 - 1, host=THERE)
    assert run._begin()
    ref = run._start(run.commands[0], exit_file(run.attempt, run.commands[0]))
    assert ref is not None
    settings.INTRASKILL_HOST_NAME = HERE
    register(HERE)
    queue.withdraw(attempt.job_id)
    attempt.refresh_from_db()
    yield attempt, ref
    process.end_group(ref, grace_s=0.0)


def passes(clock: Clock, seconds: float, act: Callable[[], object] = lambda: None) -> None:
    """The reconciler's passes of that time, one every 15 s."""
    reconcile.reconcile()
    for _ in range(int(seconds // 15)):
        clock.now += 15.0
        act()
        reconcile.reconcile()


def beat(attempt: Attempt) -> None:
    Attempt.objects.filter(pk=attempt.pk).update(heartbeat_at=timezone.now())


def vanish(clock: Clock) -> None:
    """Long enough for the host to be given up; whoever looks at its wall clock sees it down."""
    Host.objects.filter(name=THERE).update(seen_at=timezone.now() - timedelta(minutes=5))
    passes(clock, silence.SILENT_S)


def test_a_silent_host_loses_its_work_which_goes_on_elsewhere(
    there: tuple[Attempt, process.ProcessRef], clock: Clock, handed_in: Jobs
) -> None:
    attempt, _ref = there
    assert Host.objects.get(name=THERE).lease == attempt
    passes(clock, silence.SILENT_S - 15.0)
    attempt.refresh_from_db()
    assert attempt.state == State.RUNNING
    last = timezone.localtime(Host.objects.get(name=THERE).seen_at)
    vanish(clock)
    attempt.refresh_from_db()
    assert attempt.state == State.LOST
    assert attempt.error.startswith("host gpu-1 vanished in the middle of the work, last heard of")
    assert f"{last:%Y-%m-%d %H}" in attempt.error
    following = Attempt.objects.get(stage=attempt.stage, number=2)
    assert (following.state, following.host) == (State.QUEUED, HERE)
    assert Host.objects.get(name=THERE).lease is None
    assert Host.objects.get(name=HERE).lease == following
    finding = evaluate(attempt.stage.round)[0]
    assert (finding.kind, finding.subject, finding.facts["host"]) == ("vanished", "freeze/1", THERE)
    lost = AuditEvent.objects.get(action="attempt.lost")
    assert lost.detail == {"host": THERE}


@pytest.mark.parametrize("drift", [timedelta(days=-400), timedelta(0), timedelta(days=400)])
def test_a_clock_that_is_wrong_there_loses_nothing(
    there: tuple[Attempt, process.ProcessRef], clock: Clock, drift: timedelta
) -> None:
    attempt, _ref = there
    begun = timezone.now()

    def beat_there() -> None:
        written = begun + drift + timedelta(seconds=clock.now)
        Attempt.objects.filter(pk=attempt.pk).update(heartbeat_at=written)

    passes(clock, 1.5 * silence.SILENT_S, beat_there)
    attempt.refresh_from_db()
    assert attempt.state == State.RUNNING


def test_the_workers_beat_alone_keeps_a_host_alive(
    there: tuple[Attempt, process.ProcessRef], clock: Clock
) -> None:
    attempt, _ref = there
    passes(
        clock,
        2 * silence.SILENT_S,
        lambda: Host.objects.filter(name=THERE).update(seen_at=timezone.now()),
    )
    attempt.refresh_from_db()
    assert attempt.state == State.RUNNING


def test_time_in_which_this_reconciler_saw_nothing_is_nobodys_silence(
    there: tuple[Attempt, process.ProcessRef], clock: Clock
) -> None:
    attempt, _ref = there
    reconcile.reconcile()
    clock.now += 3600.0  # the database was away, or this machine slept
    reconcile.reconcile()
    attempt.refresh_from_db()
    assert attempt.state == State.RUNNING


def test_a_beat_at_the_last_moment_counts(
    there: tuple[Attempt, process.ProcessRef],
) -> None:
    attempt, _ref = there
    silent = silence._beats()
    beat(attempt)
    assert silence.call_lost(silent) == []
    assert len(silence.call_lost(silence._beats())) == 1


def test_a_pinned_experiment_waits_for_its_host_and_says_so(
    there: tuple[Attempt, process.ProcessRef], clock: Clock
) -> None:
    attempt, _ref = there
    pin_host(attempt.stage.round.experiment, THERE)
    vanish(clock)
    following = Attempt.objects.select_related("stage").get(stage=attempt.stage, number=2)
    assert (following.state, following.host) == (State.QUEUED, THERE)
    assert following.stage.message == (
        "waiting for host gpu-1, which is down: start its worker or unpin it"
    )
    pin_host(attempt.stage.round.experiment, "")
    Attempt.objects.filter(pk=following.pk).update(updated_at=timezone.now() - timedelta(hours=1))
    reconcile.reconcile()
    following.refresh_from_db()
    assert following.host == HERE


def test_where_the_files_cannot_be_read_nothing_goes_on(
    there: tuple[Attempt, process.ProcessRef], clock: Clock
) -> None:
    attempt, _ref = there
    shutil.rmtree(attempt.stage.round.experiment.folder)
    vanish(clock)
    attempt.refresh_from_db()
    assert attempt.state == State.LOST
    assert attempt.stage.attempts.count() == 1


def test_what_an_operator_stopped_stays_stopped(
    there: tuple[Attempt, process.ProcessRef], clock: Clock
) -> None:
    attempt, _ref = there
    stop_round(attempt.stage.round.experiment)
    vanish(clock)
    attempt.refresh_from_db()
    assert (attempt.state, attempt.stop_reason) == (State.LOST, "operator")
    assert attempt.stage.attempts.count() == 1


def test_a_watcher_that_returns_ends_its_process_group(
    there: tuple[Attempt, process.ProcessRef], clock: Clock, settings: Any
) -> None:
    attempt, ref = there
    vanish(clock)
    assert process.is_alive(ref), "the machine was only cut off"
    settings.INTRASKILL_HOST_NAME = THERE
    run = _Run.of(attempt, attempt.job_id)
    with pytest.raises(watch.Superseded):
        run.watch.follow(ref, exit_file(run.attempt, run.commands[0]))
    assert not process.is_alive(ref)
    following = Attempt.objects.get(stage=attempt.stage, number=2)
    assert following.state == State.QUEUED, "what took its place is untouched"
    assert run_attempt(attempt.pk, attempt.job_id) == "superseded"


def test_a_reconciler_that_returns_ends_what_has_no_watcher(
    there: tuple[Attempt, process.ProcessRef], clock: Clock, settings: Any
) -> None:
    _attempt, ref = there
    vanish(clock)
    reconcile.reconcile()
    assert process.is_alive(ref), "the process of another host is not this one's to end"
    settings.INTRASKILL_HOST_NAME = THERE
    reconcile.reconcile()
    ends(ref)


def test_a_process_that_does_not_end_holds_no_pass_up_and_is_killed_by_a_later_one(
    there: tuple[Attempt, process.ProcessRef], clock: Clock, settings: Any
) -> None:
    _attempt, ref = there
    vanish(clock)
    settings.INTRASKILL_HOST_NAME = THERE
    os.killpg(ref.pgid, signal.SIGSTOP)  # hears SIGTERM no more than one that waits for a driver
    asked: dict[int, float | None] = {}
    fence.end_lost(asked, grace_s=0.0)
    assert process.is_alive(ref)
    fence.end_lost(asked, grace_s=0.0)
    ends(ref)
    fence.end_lost(asked, grace_s=0.0)
    assert set(asked.values()) == {None}


def ends(ref: process.ProcessRef) -> None:
    deadline = time.monotonic() + 20.0
    while process.is_alive(ref):
        assert time.monotonic() < deadline
        process.reap(ref)
        time.sleep(0.02)


def test_the_next_attempt_ends_what_the_lost_one_left_before_it_begins(
    there: tuple[Attempt, process.ProcessRef], clock: Clock, settings: Any
) -> None:
    attempt, ref = there
    pin_host(attempt.stage.round.experiment, THERE)
    vanish(clock)
    settings.INTRASKILL_HOST_NAME = THERE
    following = Attempt.objects.get(stage=attempt.stage, number=2)
    assert _Run.of(following, following.job_id)._begin()
    assert not process.is_alive(ref)


def cut_off(monkeypatch: pytest.MonkeyPatch, *, after: float) -> None:
    """The database answers once, then never again."""
    write = watch.Watch._write_signs
    answered = iter([True])

    def write_signs(self: watch.Watch) -> None:
        if not next(answered, False):
            raise OperationalError("no route to the database")
        write(self)

    monkeypatch.setattr(watch.Watch, "_write_signs", write_signs)
    monkeypatch.setattr(watch, "FENCE_S", after)


def test_a_watcher_that_is_cut_off_ends_its_work_before_others_take_it(
    there: tuple[Attempt, process.ProcessRef], monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    attempt, ref = there
    settings.INTRASKILL_HOST_NAME = THERE
    run = _Run.of(attempt, attempt.job_id)
    cut_off(monkeypatch, after=0.1)
    run.watch.follow(ref, exit_file(run.attempt, run.commands[0]))
    assert not process.is_alive(ref)


def test_a_watcher_without_other_hosts_outlives_any_outage(
    there: tuple[Attempt, process.ProcessRef], monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    attempt, ref = there
    settings.INTRASKILL_HOST_NAME = THERE
    Host.objects.filter(name=HERE).delete()
    run = _Run.of(attempt, attempt.job_id)
    cut_off(monkeypatch, after=0.0)
    run.watch.beat()
    time.sleep(0.01)
    run.watch.beat()
    assert not run.watch._is_cut_off() and process.is_alive(ref)
