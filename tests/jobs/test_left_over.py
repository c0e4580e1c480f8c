"""Replays, exports and orders whose worker died, or whose job the queue lost, go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone
from django.utils.translation import override
from redis import Redis
from rq import Queue
from rq.serializers import JSONSerializer

from intraskill_web.core.handed_in import HandedIn
from intraskill_web.core.models import AuditEvent
from intraskill_web.episodes.models import Episode, Replay
from intraskill_web.experiments.models import Experiment
from intraskill_web.reports.models import EvaluationOrder, Export
from intraskill_web.reports.orders import run_order
from intraskill_web.reports.services import request_again
from jobs import left_over, placement, process, queue
from jobs.episodes.replay import run_replay
from jobs.left_over import LeftOver
from jobs.reports.orders import run_order as play_order
from jobs.stages.report import run_export
from trainer.errors import InputError
from trainer.lock import exclusive

ROOT = str(Path(__file__).resolve().parents[2])
# Takes the lock, starts a child that belongs to it, says both pids and works on.
JOB = """
import sys, subprocess, time
from pathlib import Path
sys.path.insert(0, {root!r})
import django
django.setup()
from jobs.child import belonging
from trainer.lock import exclusive
with exclusive(Path({folder!r})) as lock:
    child = subprocess.Popen(["sleep", "120"], **belonging(lock))
    print(child.pid, flush=True)
    time.sleep(120)
"""


@dataclass
class Pass:
    """A reconciler's looks, with a clock of its own; ``jobs`` are what it handed in."""

    jobs: list[tuple[str, int]]
    waiting: set[tuple[str, int]]
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.left_over = LeftOver(lambda: self.seconds)

    def look(self, seconds: float = 30.0) -> None:
        """As often as the reconciler does, for so long."""
        for _ in range(int(seconds // 2)):
            self.left_over.hand_in()
            self.seconds += 2.0


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Pass:
    made = Pass([], set())

    def enqueue(function: str, pk: int) -> None:
        made.jobs.append((function, pk))
        made.waiting.add((function, pk))

    monkeypatch.setattr(queue, "enqueue_work", enqueue)
    monkeypatch.setattr(queue, "work_waiting", lambda: made.waiting)
    return made


@pytest.fixture
def episode(transactional_db: None, home: Path) -> Episode:
    experiment = Experiment.objects.create(name="small")
    return Episode.objects.create(
        experiment=experiment, purpose="bare", episode_id="e", task_id=1, path="t.jsonl", line=0
    )


def replay(episode: Episode) -> HandedIn:
    return Replay.objects.create(episode=episode, checkpoint="start/checkpoint", n=1)


def export(episode: Episode) -> HandedIn:
    return Export.objects.create(experiment=episode.experiment, names=["small"])


def order(episode: Episode) -> HandedIn:
    return EvaluationOrder.objects.create(
        experiment=episode.experiment, name="o", split="val", state="requested"
    )


KINDS = pytest.mark.parametrize("make", [replay, export, order])
Make = Callable[[Episode], HandedIn]


def note(row: HandedIn, **values: object) -> None:
    type(row)._default_manager.filter(pk=row.pk).update(**values)
    row.refresh_from_db()


@KINDS
def test_what_lost_its_worker_is_handed_in_again_within_half_a_minute(
    episode: Episode, passes: Pass, make: Make
) -> None:
    row = make(episode)
    note(row, state="running")
    with exclusive(row.workplace):
        passes.look()
        assert passes.jobs == []
    passes.look(left_over.SETTLE_S + 4)
    row.refresh_from_db()
    assert (row.state, row.tries, passes.jobs) == ("requested", 1, [(row.JOB, row.pk)])
    passes.look()  # it waits for a worker now
    assert len(passes.jobs) == 1


@KINDS
def test_what_the_queue_lost_is_handed_in_again_and_what_waits_is_not(
    episode: Episode, passes: Pass, make: Make
) -> None:
    row = make(episode)
    passes.waiting.add((row.JOB, row.pk))
    passes.look()
    assert passes.jobs == []
    passes.waiting.clear()
    passes.look()
    row.refresh_from_db()
    assert (row.state, row.tries, passes.jobs) == ("requested", 0, [(row.JOB, row.pk)])


@KINDS
def test_what_lost_its_worker_again_and_again_is_left_to_people(
    episode: Episode, passes: Pass, make: Make
) -> None:
    row = make(episode)
    note(row, state="running", tries=left_over.MOST_TRIES)
    passes.look()
    row.refresh_from_db()
    assert (row.state, passes.jobs) == ("failed", [])
    assert row.error.startswith("its worker was lost ten times") and left_over.MOST_TRIES == 10
    with override("zh-hans"):
        assert "十次" in row.why


@KINDS
def test_what_was_left_to_people_goes_on_once_they_hand_it_in(
    episode: Episode, passes: Pass, make: Make, operator_client: Client
) -> None:
    row = make(episode)
    note(row, state="running", tries=left_over.MOST_TRIES)
    passes.look()
    hand_in(row, operator_client)
    row.refresh_from_db()
    assert (row.state, row.error, row.tries) == ("requested", "", 0)
    passes.look()
    assert passes.jobs == [(row.JOB, row.pk)]
    note(row, state="running")
    passes.waiting.clear()
    passes.look()
    row.refresh_from_db()
    assert (row.state, row.tries) == ("requested", 1)


def hand_in(row: HandedIn, client: Client) -> None:
    """What a person does about it."""
    if isinstance(row, Replay):
        client.post(f"/episodes/{row.episode_id}/replay/", {"again": row.pk})
    elif isinstance(row, Export):
        request_again(row, actor=None)
    else:
        assert isinstance(row, EvaluationOrder)
        run_order(row, actor=None)


RUN = {Replay: run_replay, Export: run_export, EvaluationOrder: play_order}
PLAY = {
    Replay: "jobs.episodes.replay._prepare",
    Export: "jobs.stages.report._make",
    EvaluationOrder: "jobs.reports.orders.write_order",
}


@KINDS
def test_work_that_was_handed_in_at_another_host_is_begun_there_only(
    episode: Episode, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This host was away; its queue still has the job of before."""
    row = make(episode)
    note(row, state="requested", host="elsewhere")
    monkeypatch.setattr(PLAY[type(row)], lambda *_: pytest.fail("it is played twice"))
    RUN[type(row)](row.pk)
    row.refresh_from_db()
    assert row.state == "requested"


@KINDS
def test_work_that_goes_on_at_another_host_is_not_written_here_any_more(
    episode: Episode, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = make(episode)

    def be_long(*_: object) -> None:
        note(row, state="running", host="elsewhere")
        raise InputError("the database was out of reach")

    monkeypatch.setattr(PLAY[type(row)], be_long)
    RUN[type(row)](row.pk)
    row.refresh_from_db()
    assert (row.state, row.error, row.host) == ("running", "", "elsewhere")
    assert not AuditEvent.objects.filter(action__in=("order.end", "report.export")).exists()


@KINDS
def test_people_take_work_away_from_a_host_that_fell_silent(
    episode: Episode, make: Make, operator_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_ago = timezone.now() - timedelta(hours=1)
    row = make(episode)
    told = {} if isinstance(row, Replay) else {"heartbeat_at": long_ago}
    note(row, state="running", host="elsewhere", created_at=long_ago, **told)
    hand_in(row, operator_client)
    row.refresh_from_db()
    assert (row.state, row.host) == ("requested", settings.INTRASKILL_HOST_NAME)


@KINDS
def test_work_of_another_host_and_what_is_over_are_left_alone(
    episode: Episode, passes: Pass, make: Make
) -> None:
    note(make(episode), state="running", host="elsewhere")
    passes.look()
    type_ = {replay: Replay, export: Export, order: EvaluationOrder}[make]
    type_._default_manager.update(state="failed", host=settings.INTRASKILL_HOST_NAME)
    passes.look()
    assert passes.jobs == []


def test_an_order_that_lost_its_worker_while_it_stopped_is_stopped(
    episode: Episode, passes: Pass
) -> None:
    row = order(episode)
    note(row, state="stopping")
    passes.look()
    row.refresh_from_db()
    assert (row.state, passes.jobs) == ("stopped", [])


@pytest.fixture
def job(tmp_path: Path) -> subprocess.Popen[str]:
    text = JOB.format(root=ROOT, folder=str(tmp_path / "work"))
    return subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while process.start_token(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not process.start_token(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends it on Linux only")
def test_a_trainer_dies_with_its_killed_job_and_the_folder_is_free(
    job: subprocess.Popen[str], tmp_path: Path
) -> None:
    assert job.stdout is not None
    child = int(job.stdout.readline())
    assert left_over.is_held(tmp_path / "work")
    job.kill()
    job.wait()
    assert gone(child)
    assert not left_over.is_held(tmp_path / "work")


def test_a_folder_is_held_as_long_as_a_trainer_of_its_job_lives(tmp_path: Path) -> None:
    with exclusive(tmp_path) as lock:
        child = subprocess.Popen(["sleep", "60"], pass_fds=(lock,))
    assert left_over.is_held(tmp_path)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert not left_over.is_held(tmp_path)


@pytest.mark.django_db
def test_the_queue_tells_what_waits(valkey: subprocess.Popen[bytes]) -> None:
    assert queue.work_waiting() == set()
    queue.enqueue_work(Replay.JOB, 7)
    queue.enqueue_work(Replay.JOB, 7)
    assert queue.work_waiting() == {(Replay.JOB, 7)}
    name = placement.queue_name(settings.INTRASKILL_HOST_NAME, placement.WORK)
    link: Redis = queue.connection()
    Queue(name, connection=link, serializer=JSONSerializer).empty()
    assert queue.work_waiting() == set()
