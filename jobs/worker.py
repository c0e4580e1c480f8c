"""Being a worker of rq: one that makes itself known beside the queue too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from redis import Redis
from rq import Worker
from rq.serializers import JSONSerializer

from jobs.queue import queue_named, url

RECONNECT_S = 2.0
WORKER_TTL_S = 30  # an idle worker says every half of it that it lives


class Presence(Protocol):
    """What a worker tells others of itself besides the queue."""

    def begin(self) -> None: ...
    def beat(self) -> None: ...
    def end(self) -> None: ...


class HostWorker(Worker):
    """A worker that makes itself known when it begins, while it waits or works, and at its end."""

    presence: Presence | None = None

    def register_birth(self) -> None:
        super().register_birth()  # type: ignore[no-untyped-call]
        if self.presence is not None:
            self.presence.begin()

    def heartbeat(self, timeout: int | None = None, pipeline: Any = None) -> None:
        super().heartbeat(timeout, pipeline)
        if self.presence is not None and not self.is_horse:
            self.presence.beat()

    def register_death(self) -> None:
        if self.presence is not None:
            self.presence.end()
        super().register_death()  # type: ignore[no-untyped-call]


def work(queue_names: Sequence[str], presence: Callable[[str, list[str]], Presence]) -> None:
    """Be a worker until SIGTERM: take one attempt after the other, each in a forked work-horse.

    Earlier queues are served first. ``presence`` is called with the worker's name and its queues.
    """
    link = Redis.from_url(url())
    worker = HostWorker(
        [queue_named(name, link) for name in queue_names],
        connection=link,
        serializer=JSONSerializer,
        job_monitoring_interval=5,
        worker_ttl=WORKER_TTL_S,
    )
    worker.presence = presence(worker.name, list(queue_names))
    worker.max_connection_wait_time = RECONNECT_S  # rq would wait up to a minute
    worker.work(with_scheduler=False, logging_level="WARNING")
