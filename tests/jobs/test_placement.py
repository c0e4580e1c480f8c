"""Which host an attempt goes to, who holds a host's GPUs, and who gets them next."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from intraskill_web.experiments import flow
from intraskill_web.experiments.models import Attempt, Experiment, Stage
from intraskill_web.experiments.moves import move
from intraskill_web.experiments.services import resume_round, start_round, stop_round
from intraskill_web.experiments.states import STAGE_ORDER
from jobs import placement, queue, reconcile
from jobs.management.commands.worker import SERVED
from jobs.models import Host
from jobs.transitions import State

Jobs = list[tuple[int, str]]
GPU = {"index": 0, "name": "H200", "memory_bytes": 2**37, "used_bytes": 0}


def host(name: str, *, gpus: int = 1, seen: timedelta = timedelta(0), **fields: Any) -> Host:
    return Host.objects.create(
        name=name,
        gpus=[GPU] * gpus,
        workers=[{"name": f"{name}.1", "pid": 1, "started": "x", "queues": []}],
        seen_at=timezone.now() - seen,
        **fields,
    )


def another(name: str, **fields: Any) -> Experiment:
    return Experiment.objects.create(name=name, rounds_planned=2, **fields)


@pytest.fixture
def experiments(transactional_db: None, home: Path, handed_in: Jobs) -> list[Experiment]:
    return [another("one"), another("two")]


def attempt_of(experiment: Experiment) -> Attempt:
    return Attempt.objects.filter(stage__round__experiment=experiment).latest("pk")


def end(attempt: Attempt, state: State = State.FAILED) -> None:
    for step in (State.STARTING, State.RUNNING, state):
        assert move(attempt, step)


def test_of_two_that_want_one_gpu_the_second_waits_and_follows(
    experiments: list[Experiment], handed_in: Jobs
) -> None:
    gpu = host("gpu-1")
    for experiment in experiments:
        start_round(experiment)
    first, second = (attempt_of(e) for e in experiments)
    gpu.refresh_from_db()
    assert gpu.lease == first and gpu.leased_at
    assert (first.host, first.queue) == ("gpu-1", "stages:gpu-1:gpu")
    assert [attempt for attempt, _job in handed_in] == [first.pk]
    assert (second.state, second.queue) == (State.REQUESTED, "")
    assert second.stage.message == "waiting for a host"
    end(first)
    gpu.refresh_from_db()
    second.refresh_from_db()
    assert (gpu.lease, second.state) == (second, State.QUEUED)


def test_whoever_waits_longest_gets_the_gpu(experiments: list[Experiment], handed_in: Jobs) -> None:
    host("gpu-1")
    for experiment in (*experiments, another("three")):
        start_round(experiment)
    end(attempt_of(experiments[0]))
    assert handed_in[-1][0] == attempt_of(experiments[1]).pk


def test_a_free_host_takes_what_a_busy_one_cannot(
    experiments: list[Experiment], handed_in: Jobs
) -> None:
    host("gpu-1")
    host("gpu-2")
    for experiment in experiments:
        start_round(experiment)
    assert {attempt_of(e).host for e in experiments} == {"gpu-1", "gpu-2"}
    assert len(handed_in) == 2


def test_an_experiment_that_names_its_host_waits_for_it(
    experiments: list[Experiment], handed_in: Jobs
) -> None:
    host("gpu-1")
    host("gpu-2")
    Experiment.objects.update(host="gpu-2")
    for experiment in Experiment.objects.order_by("pk"):
        start_round(experiment)
    assert attempt_of(experiments[0]).host == "gpu-2"
    assert attempt_of(experiments[1]).queue == ""


def test_a_host_without_a_worker_or_long_silent_gets_nothing(
    experiments: list[Experiment], handed_in: Jobs
) -> None:
    host("silent", seen=timedelta(minutes=5))
    Host.objects.create(name="idle", gpus=[GPU])
    start_round(experiments[0])
    assert attempt_of(experiments[0]).host == settings.INTRASKILL_HOST_NAME


def test_a_host_without_gpus_leases_nothing_and_takes_as_many_as_it_has_workers(
    experiments: list[Experiment], handed_in: Jobs
) -> None:
    one = host("cpu-1", gpus=0)
    Host.objects.filter(pk=one.pk).update(workers=[*one.workers, *one.workers])
    for experiment in (*experiments, another("three")):
        start_round(experiment)
    first, *others = Attempt.objects.order_by("pk")
    assert [a.host for a in (first, *others)] == ["cpu-1", "cpu-1", ""]
    assert Host.objects.get().lease is None
    end(first)
    assert handed_in[-1][0] == others[-1].pk, "a worker is free again"


def test_a_worker_that_trains_leaves_no_room_for_what_needs_no_gpu(
    experiments: list[Experiment], handed_in: Jobs
) -> None:
    host("gpu-1")
    for experiment in experiments:
        start_round(experiment)
    waiting = attempt_of(experiments[1])
    waiting.skip_reason = "asked for"
    assert placement.place(waiting) is None
    Host.objects.update(workers=[{"pid": 1}, {"pid": 2}])
    assert placement.place(waiting) == placement.Place("gpu-1", "stages:gpu-1:cpu")


def test_a_worker_for_replays_alone_makes_no_room_for_a_stage(
    experiments: list[Experiment], handed_in: Jobs
) -> None:
    one = host("laptop", gpus=0)
    workers = [{"pid": pid, "queues": [placement.queue_name("laptop", kind) for kind in kinds]}
               for pid, kinds in ((1, SERVED["stages"]), (2, SERVED["work"]))]  # fmt: skip
    Host.objects.filter(pk=one.pk).update(workers=workers)
    for experiment in experiments:
        start_round(experiment)
    first, second = (attempt_of(e) for e in experiments)
    assert (first.queue, second.queue) == ("stages:laptop:gpu", ""), "one stage at a time"
    second.skip_reason = "asked for"
    assert placement.place(second) is None, "of whatever kind"
    Host.objects.filter(pk=one.pk).update(workers=workers[1:])
    assert placement.rooms(first)["laptop"] == {"gpu": 0, "cpu": 0}


def test_a_worker_of_one_kind_is_no_room_for_the_other(
    experiments: list[Experiment], handed_in: Jobs
) -> None:
    one = host("gpu-1", gpus=0)
    workers = [{"pid": 1, "queues": [placement.queue_name("gpu-1", kind)]}
               for kind in placement.KINDS]  # fmt: skip
    Host.objects.filter(pk=one.pk).update(workers=workers)
    for experiment in experiments:
        start_round(experiment)
    first, second = (attempt_of(e) for e in experiments)
    assert (first.queue, second.queue) == ("stages:gpu-1:gpu", ""), "one worker plays"
    second.skip_reason = "asked for"
    assert placement.place(second) == placement.Place("gpu-1", "stages:gpu-1:cpu")
    Attempt.objects.filter(pk=first.pk).update(queue="stages:gpu-1:cpu")
    assert placement.place(second) is None, "the other worker reads"
    second.skip_reason = ""
    assert placement.place(second) == placement.Place("gpu-1", "stages:gpu-1:gpu")


@pytest.mark.parametrize("gpus", [0, 1])
def test_a_round_that_began_is_finished_before_another_begins(
    experiments: list[Experiment], handed_in: Jobs, gpus: int
) -> None:
    """Of several arms of a sweep the first trains at once, and none waits for all the others."""
    host("host-1", gpus=gpus)
    for experiment in (*experiments, another("three")):
        start_round(experiment)
    order = []
    for _step in range(9):
        attempt = Attempt.objects.get(pk=handed_in[-1][0])
        order.append(f"{attempt.stage.round.experiment.name} {attempt.stage.kind}")
        with transaction.atomic():  # as jobs/runner.py ends a stage
            end(attempt, State.SUCCEEDED)
            flow.advance(attempt.stage.round.experiment)
    one_round = [f"one {kind}" for kind in STAGE_ORDER]
    assert order == [*one_round, "two freeze", "two train", "two analyse"]


def test_what_waits_for_a_host_has_its_turn_by_the_age_of_its_round(
    experiments: list[Experiment], handed_in: Jobs
) -> None:
    host("gpu-1")
    for experiment in (*experiments, another("three")):
        start_round(experiment)
    first = attempt_of(experiments[0])
    end(first)  # it fails, and the second takes the GPU
    resume_round(experiments[0])
    again = attempt_of(experiments[0])
    assert again.queue == "" and again.pk > Attempt.objects.get(number=1, queue="").pk
    end(attempt_of(experiments[1]))
    assert handed_in[-1][0] == again.pk


def test_work_spreads_over_hosts_without_gpus(
    experiments: list[Experiment], handed_in: Jobs
) -> None:
    host("cpu-1", gpus=0)
    host("cpu-2", gpus=0)
    for experiment in experiments:
        start_round(experiment)
    assert {attempt_of(e).host for e in experiments} == {"cpu-1", "cpu-2"}


def test_stopping_while_waiting_for_a_gpu_needs_no_worker(
    experiments: list[Experiment], handed_in: Jobs
) -> None:
    host("gpu-1")
    for experiment in experiments:
        start_round(experiment)
    assert stop_round(experiments[1])
    assert attempt_of(experiments[1]).state == State.STOPPED
    end(attempt_of(experiments[0]))
    assert Host.objects.get().lease is None


@pytest.mark.parametrize(
    ("kind", "number", "wanted"),
    [
        ("freeze", 0, "gpu"),
        ("freeze", 1, "cpu"),
        ("train", 0, "gpu"),
        ("analyse", 0, "cpu"),
        ("validate", 0, "gpu"),
        ("gate", 1, "gpu"),
        ("select", 0, "cpu"),
        ("select", 1, "gpu"),
    ],
)
def test_only_what_plays_or_trains_the_policy_needs_a_gpu(
    experiments: list[Experiment], kind: str, number: int, wanted: str
) -> None:
    start_round(experiments[0])
    stage = Stage.objects.get(round__experiment=experiments[0], kind=kind)
    stage.round.number = number
    assert placement.kind_of(stage) == wanted
    assert placement.kind_of(stage, skipped=True) == "cpu"


def test_what_a_host_took_goes_back_to_that_host(
    experiments: list[Experiment], handed_in: Jobs
) -> None:
    host("gpu-1")
    start_round(experiments[0])
    attempt = attempt_of(experiments[0])
    move(attempt, State.STARTING)
    move(attempt, State.RUNNING)
    Host.objects.update(seen_at=timezone.now() - timedelta(hours=1))
    host("gpu-2")
    assert placement.place(attempt) == placement.Place("gpu-1", "stages:gpu-1:gpu")


def test_what_waits_at_a_dead_host_moves_to_a_living_one(
    experiments: list[Experiment], handed_in: Jobs
) -> None:
    dead = host("gpu-1")
    start_round(experiments[0])
    first = attempt_of(experiments[0])
    Host.objects.filter(pk=dead.pk).update(seen_at=timezone.now() - timedelta(minutes=5))
    Attempt.objects.update(updated_at=timezone.now() - timedelta(minutes=5))
    living = host("gpu-2")
    job = first.job_id
    reconcile.reconcile()
    first.refresh_from_db()
    living.refresh_from_db()
    dead.refresh_from_db()
    assert (first.host, first.executions, living.lease) == ("gpu-2", 2, first)
    assert dead.lease is None, "one attempt holds one host"
    assert not queue.is_waiting(job), "the former job is withdrawn"


def test_what_waits_at_another_living_host_is_its_own_business(
    experiments: list[Experiment], handed_in: Jobs
) -> None:
    host("gpu-1")
    start_round(experiments[0])
    queue.withdraw(attempt_of(experiments[0]).job_id)
    Attempt.objects.update(updated_at=timezone.now() - timedelta(minutes=5))
    reconcile.reconcile()
    assert len(handed_in) == 1


@pytest.mark.parametrize("jump", [timedelta(hours=-6), timedelta(hours=6)])
def test_a_clock_that_was_set_does_not_hold_the_reconciler_up(
    experiments: list[Experiment], handed_in: Jobs, jump: timedelta
) -> None:
    start_round(experiments[0])
    attempt = attempt_of(experiments[0])
    queue.withdraw(attempt.job_id)
    Attempt.objects.update(updated_at=timezone.now() + jump)
    reconcile.reconcile()
    attempt.refresh_from_db()
    assert attempt.executions == 2
