"""The door to rq: hand an attempt to a worker, take it back, ask how the queue is.

A job carries nothing but ids as JSON; the database holds the truth, so an empty queue loses
nothing: the reconciler hands in again what is missing. Timeouts are always explicit (rq's own
default would end a training run after three minutes), job ids are made once and never again, and
no registry is read in a way that runs rq's clean-up inside a page.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial

from django.conf import settings
from django.db import transaction
from redis import Redis
from redis.exceptions import RedisError
from rq import Queue, Worker
from rq.exceptions import DuplicateJobError, NoSuchJobError
from rq.job import Job, JobStatus
from rq.serializers import JSONSerializer
from rq.worker import BaseWorker

from intraskill_web import home
from intraskill_web.queues import redis_url

RUN_ATTEMPT = "jobs.runner.run_attempt"
NO_TIMEOUT = -1
RESULT_TTL_S = 86_400
FAILURE_TTL_S = 7 * 86_400
CONNECT_TIMEOUT_S = 2.0
WAITING = (JobStatus.QUEUED, JobStatus.DEFERRED, JobStatus.SCHEDULED)


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker that is registered with the queue; ``kinds`` are those of ``placement``."""

    name: str
    host: str
    pid: int
    state: str
    job_id: str | None
    heartbeat: datetime | None
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """How the queue is now; ``error`` says why it is down."""

    up: bool
    waiting: int
    workers: tuple[WorkerInfo, ...]
    error: str = ""


def connection() -> Redis:
    """A connection that fails within seconds instead of hanging when the queue is down."""
    return _connected(url())


@lru_cache(maxsize=4)
def _connected(address: str) -> Redis:
    """One pool an address: it survives restarts of the server, forks and threads."""
    return Redis.from_url(address, socket_connect_timeout=CONNECT_TIMEOUT_S)


def url() -> str:
    """Asked at each call: an embedded server may come back at another port."""
    return redis_url(settings.REDIS_URL, settings.INTRASKILL_HOME)


def job_id_of(attempt_id: int, execution: int) -> str:
    """The id of one execution of one attempt; equal in no other home that shares the server."""
    return f"{home.short_id(settings.INTRASKILL_HOME)}-attempt-{attempt_id}-{execution}"


def enqueue_on_commit(
    attempt_id: int, job_id: str, queue_name: str, done: Callable[[], None]
) -> None:
    """After the transaction, hand the attempt in and call ``done``.

    When the queue is down nothing is raised: the attempt stays ``requested`` and the reconciler
    hands it in once the queue is back.
    """
    transaction.on_commit(partial(_enqueue, attempt_id, job_id, queue_name, done), robust=True)


def _enqueue(attempt_id: int, job_id: str, queue_name: str, done: Callable[[], None]) -> None:
    try:
        enqueue(attempt_id, job_id, queue_name)
    except RedisError:
        return
    done()


def enqueue(attempt_id: int, job_id: str, queue_name: str) -> bool:
    """Hand the attempt in now; False if this execution was handed in before. Raises RedisError."""
    try:
        queue_named(queue_name).enqueue_call(
            RUN_ATTEMPT,
            args=(attempt_id, job_id),
            timeout=NO_TIMEOUT,
            result_ttl=RESULT_TTL_S,
            failure_ttl=FAILURE_TTL_S,
            job_id=job_id,
            unique=True,
            description=f"attempt {attempt_id}",
        )
    except DuplicateJobError:
        return False
    return True


def enqueue_work_on_commit(function: str, pk: int, job_id: str) -> None:
    """After the transaction, hand in work that is no attempt, such as an export: its row's id.

    It goes to a queue of this host, because its files lie here, and to one of its own, so that a
    worker can take it beside a stage of hours. When the queue is down nothing is raised; the row
    stays as requested, and ``left_over.py`` hands it in again.
    """
    transaction.on_commit(partial(_enqueue_work, function, pk, job_id), robust=True)


def _enqueue_work(function: str, pk: int, job_id: str) -> None:
    from jobs.placement import WORK, queue_name  # reads rows, which this is imported before

    with suppress(RedisError, DuplicateJobError):
        queue_named(queue_name(settings.INTRASKILL_HOST_NAME, WORK)).enqueue_call(
            function,
            args=(pk,),
            timeout=NO_TIMEOUT,
            result_ttl=RESULT_TTL_S,
            failure_ttl=FAILURE_TTL_S,
            job_id=f"{home.short_id(settings.INTRASKILL_HOME)}-{job_id}",
            unique=True,
            description=job_id,
        )


def enqueue_work(function: str, pk: int) -> None:
    """Hand in now, once more, work that lost its job. When the queue is down nothing happens."""
    _enqueue_work(function, pk, f"{function.rpartition('.')[2]}-{pk}-{time.time_ns()}")


def work_waiting() -> set[tuple[str, int]]:
    """Function and row of what waits for this host's workers. Raises RedisError."""
    from jobs.placement import WORK, queue_name

    jobs = queue_named(queue_name(settings.INTRASKILL_HOST_NAME, WORK)).get_jobs()
    return {(str(job.func_name), int(job.args[0])) for job in jobs}


def withdraw(job_id: str) -> None:
    """Take a waiting job out of the queue; nothing happens if it is gone or the queue is down."""
    try:
        Job.fetch(job_id, connection=connection(), serializer=JSONSerializer).delete()
    except (NoSuchJobError, RedisError):
        return


def withdraw_on_commit(job_id: str) -> None:
    """After the transaction, take a waiting job out of the queue."""
    transaction.on_commit(partial(withdraw, job_id), robust=True)


def is_waiting(job_id: str) -> bool:
    """Whether the job waits for a worker. Raises RedisError when the queue is down."""
    try:
        job = Job.fetch(job_id, connection=connection(), serializer=JSONSerializer)
    except NoSuchJobError:
        return False
    if job.get_status(refresh=False) not in WAITING:
        return False
    return queue_named(job.origin).get_job_position(job_id) is not None


def status() -> QueueStatus:
    """The queue as it is now. Never raises: a queue that is down says so."""
    try:
        link = connection()
        waiting = sum(queue.count for queue in _queues(link))
        found = map(_info, Worker.all(connection=link))
        workers = tuple(worker for worker in found if worker.kinds)
    except RedisError as error:
        return QueueStatus(up=False, waiting=0, workers=(), error=str(error))
    return QueueStatus(up=True, waiting=waiting, workers=workers)


def _queues(link: Redis) -> list[Queue]:
    """The queues of this installation that hold, or held, anything."""
    ours = f"{settings.INTRASKILL_QUEUE}:"
    found = Queue.all(connection=link, serializer=JSONSerializer)
    return [queue for queue in found if queue.name.startswith(ours)]


def queue_named(name: str, link: Redis | None = None) -> Queue:
    """A queue of jobs that are JSON and never time out by themselves."""
    return Queue(
        name,
        connection=link or connection(),
        serializer=JSONSerializer,
        default_timeout=NO_TIMEOUT,
    )


def _info(worker: BaseWorker) -> WorkerInfo:
    """``kinds`` is empty for a worker of another installation at the same server."""
    ours = [
        name for name in worker.queue_names() if name.startswith(f"{settings.INTRASKILL_QUEUE}:")
    ]
    return WorkerInfo(
        name=worker.name,
        host=worker.hostname or socket.gethostname(),
        pid=worker.pid or 0,
        state=str(worker.get_state()),
        job_id=worker.get_current_job_id(),
        heartbeat=worker.last_heartbeat,
        kinds=tuple(name.rpartition(":")[2] for name in ours),
    )
