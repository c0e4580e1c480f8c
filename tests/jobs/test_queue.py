"""The door to rq, against a real Valkey."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from django.conf import settings
from django.db import transaction
from redis import Redis
from redis.exceptions import AuthenticationError
from rq import Queue
from rq.serializers import JSONSerializer
from rq.worker import SimpleWorker

from intraskill_web import home as home_folder
from intraskill_web.queues import embedded_port
from jobs import placement, queue

Server = subprocess.Popen[bytes]
NAME = "stages:somewhere:cpu"


def test_a_job_carries_ids_as_json_and_never_times_out(valkey: Server) -> None:
    assert queue.enqueue(7, queue.job_id_of(7, 1), NAME)
    [job] = Queue(NAME, connection=queue.connection(), serializer=JSONSerializer).get_jobs()
    assert job.func_name == "jobs.runner.run_attempt"
    assert job.args == [7, queue.job_id_of(7, 1)]
    assert job.timeout == -1


def test_the_dashboard_of_rq_shows_every_queue_of_this_host() -> None:
    assert list(settings.RQ_QUEUES) == placement.queue_names()


def test_the_same_execution_is_handed_in_only_once(valkey: Server) -> None:
    job_id = queue.job_id_of(7, 1)
    assert queue.enqueue(7, job_id, NAME)
    assert not queue.enqueue(7, job_id, NAME)
    assert queue.status().waiting == 1
    assert queue.enqueue(7, queue.job_id_of(7, 2), NAME)


def test_a_waiting_job_is_seen_and_can_be_withdrawn(valkey: Server) -> None:
    job_id = queue.job_id_of(7, 1)
    assert not queue.is_waiting(job_id)
    queue.enqueue(7, job_id, NAME)
    assert queue.is_waiting(job_id)
    queue.withdraw(job_id)
    assert not queue.is_waiting(job_id)
    queue.withdraw(job_id)


def test_job_ids_of_two_homes_differ(home: Path, settings: object, tmp_path: Path) -> None:
    mine = queue.job_id_of(7, 1)
    settings.INTRASKILL_HOME = tmp_path / "other"  # type: ignore[attr-defined]
    assert queue.job_id_of(7, 1) != mine


@pytest.mark.django_db(transaction=True)
def test_a_job_appears_only_after_the_commit(valkey: Server) -> None:
    done: list[str] = []
    with transaction.atomic():
        queue.enqueue_on_commit(7, queue.job_id_of(7, 1), NAME, lambda: done.append("yes"))
        assert queue.status().waiting == 0
    assert queue.status().waiting == 1
    assert done == ["yes"]


@pytest.mark.django_db(transaction=True)
def test_a_rolled_back_job_never_appears(valkey: Server) -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        queue.enqueue_on_commit(7, queue.job_id_of(7, 1), NAME, lambda: None)
        raise RuntimeError("no")
    assert queue.status().waiting == 0


@pytest.mark.django_db(transaction=True)
def test_a_queue_that_is_down_raises_nothing_and_marks_nothing(home: Path) -> None:
    done: list[str] = []
    queue.enqueue_on_commit(7, queue.job_id_of(7, 1), NAME, lambda: done.append("yes"))
    assert done == []
    status = queue.status()
    assert not status.up and "refused" in status.error


def test_the_server_listens_on_loopback_with_a_password_of_its_home(valkey: Server) -> None:
    port = embedded_port(settings.INTRASKILL_HOME)
    assert port
    with pytest.raises(AuthenticationError):
        Redis(port=port).ping()
    server = queue.connection()
    assert server.config_get("bind") == {"bind": "127.0.0.1"}
    assert server.config_get("appendonly") == {"appendonly": "yes"}
    secret = home_folder.secret(settings.INTRASKILL_HOME, "valkey-password")
    assert server.config_get("requirepass") == {"requirepass": secret}


def test_what_waits_survives_a_killed_server(valkey: Server, home: Path) -> None:
    from jobs.services import valkey as embedded

    queue.enqueue(7, queue.job_id_of(7, 1), NAME)
    queue.connection().execute_command("WAITAOF", 1, 0, 5000)
    valkey.kill()
    valkey.wait()
    assert not queue.status().up
    again = subprocess.Popen(embedded.prepare(home))
    try:
        while not queue.status().up:
            pass
        assert queue.is_waiting(queue.job_id_of(7, 1))
    finally:
        again.kill()
        again.wait()


def test_a_registered_worker_is_listed(valkey: Server) -> None:
    link = queue.connection()
    worker = SimpleWorker([Queue(NAME, connection=link)], connection=link)
    worker.register_birth()
    [info] = queue.status().workers
    assert info.name == worker.name and info.pid == worker.pid
    assert info.heartbeat is not None
    assert info.kinds == ("cpu",)


def test_a_worker_of_another_installation_at_the_same_server_is_not_ours(valkey: Server) -> None:
    link = queue.connection()
    SimpleWorker([Queue("theirs:somewhere:cpu", connection=link)], connection=link).register_birth()
    assert queue.status().workers == ()
