"""A simulated fleet: many hosts on one Valkey and one PostgreSQL, and no work.

    python -m benchmarks.fleet [--json] [--hosts 100] [--hold 20] [--seconds 90]

Every host is a real registration: two workers of rq, one a kind of work, that are known to the
queue, wait in its queues and say that they live, and the host's row with a GPU to lease. Two
experiments a host want it; a stage of theirs holds it for ``hold`` seconds and does nothing.
``dispatch`` is the time from the decision that an attempt goes to a host, which has the lease by
then, to the moment at which that host began with it, through the database and the queue.
``reconcile`` is a full pass of one host's reconciler during that load, with as many experiments
again waiting for a GPU.

Without ``DATABASE_URL`` a throw-away PostgreSQL is started by ``.ci/postgres``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if not __package__:  # started as a file
    sys.path.insert(0, str(ROOT))

PROCESSES = 4  # the hosts share them: a process a host would measure the machine's memory
STAGES = 6
READY_S = 120.0
GPU = {"index": 0, "name": "simulated", "memory_bytes": 2**37, "used_bytes": 0}


def main() -> None:
    """Measure, or be one process of the fleet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--hold", type=float, default=20.0, help="seconds a stage holds its GPU")
    parser.add_argument("--seconds", type=float, default=90.0, help="how long to measure")
    parser.add_argument("--simulate", nargs=2, type=int, metavar=("FROM", "TO"))
    args = parser.parse_args()
    if args.simulate:
        return simulate(range(*args.simulate), args.hold)
    if "DATABASE_URL" not in os.environ:
        return _with_postgres(sys.argv[1:])
    figures = measure(args.hosts, args.hold, args.seconds)
    if args.json:
        print(json.dumps({"figures": figures}))
    else:
        for name, row in figures.items():
            print(f"{name:<24} {row['value']:>10.1f} {row['unit']}")
    return None


def _with_postgres(arguments: list[str]) -> None:
    if not any(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        print(json.dumps({"figures": {}, "skipped": "PostgreSQL is not installed"}))
        return
    command = [str(ROOT / ".ci" / "postgres"), sys.executable, "-m", "benchmarks.fleet"]
    os.chdir(ROOT)
    os.execv(command[0], [*command, *arguments])


def measure(hosts: int, hold: float, seconds: float) -> dict[str, dict[str, Any]]:
    """The figures of ``seconds`` of work of ``hosts`` hosts."""
    with ExitStack() as stack:
        stack.enter_context(_home())
        from django.core.management import call_command

        call_command("migrate", interactive=False, verbosity=0)
        stack.enter_context(_valkey())
        stack.enter_context(_fleet(hosts, hold))
        _await_hosts(hosts)
        passes = _run(hosts, hold, seconds)
        return _figures(hosts, passes)


def _run(hosts: int, hold: float, seconds: float) -> list[float]:
    """Start an experiment a host and another that must wait; the seconds of each pass.

    Starts are spread over ``hold`` seconds, as people's are, so that stages do not end all at once.
    """
    from django.test.utils import override_settings

    from intraskill_web.experiments.models import Experiment, Stage
    from intraskill_web.experiments.services import start_round
    from jobs.reconcile import reconcile

    for number in range(2 * hosts):
        host = _name(number % hosts)
        start_round(Experiment.objects.create(name=f"fleet-{number}", host=host), is_ready=True)
        time.sleep(hold / (2 * hosts))
    passes: list[float] = []
    deadline = time.monotonic() + seconds
    done = Stage.objects.filter(state="succeeded")
    while done.count() < 2 * hosts * STAGES and time.monotonic() < deadline:
        with override_settings(INTRASKILL_HOST_NAME=_name(len(passes) % hosts)):
            started = time.perf_counter()
            reconcile()
            passes.append(time.perf_counter() - started)
        time.sleep(1.0)
    return passes


def _figures(hosts: int, passes: list[float]) -> dict[str, dict[str, Any]]:
    from intraskill_web.experiments.models import Attempt
    from jobs.models import Host

    seconds = [
        (attempt.started_at - attempt.queued_at).total_seconds()
        for attempt in Attempt.objects.all()
        if attempt.started_at and attempt.queued_at
    ]
    return {
        "hosts": _figure(len(Host.objects.exclude(workers=[])), "hosts"),
        "dispatches": _figure(len(seconds), "stages"),
        "dispatch_p50_ms": _figure(_percentile(seconds, 50) * 1e3, "ms"),
        "dispatch_p95_ms": _figure(_percentile(seconds, 95) * 1e3, "ms"),
        "dispatch_max_ms": _figure(max(seconds) * 1e3, "ms"),
        "reconcile_passes": _figure(len(passes), "passes"),
        "reconcile_p95_ms": _figure(_percentile(passes, 95) * 1e3, "ms"),
        "reconcile_max_ms": _figure(max(passes) * 1e3, "ms"),
    }


def _figure(value: float, unit: str) -> dict[str, Any]:
    return {"value": value, "unit": unit, "peer": None, "ratio": None}


def _percentile(values: list[float], percent: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def _name(number: int) -> str:
    return f"host-{number:03d}"


@contextmanager
def _home() -> Iterator[None]:
    folder = tempfile.mkdtemp(prefix="intraskill-fleet-")
    os.environ["INTRASKILL_HOME"] = folder
    os.environ.pop("REDIS_URL", None)
    try:
        _django()
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _django() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "intraskill_web.settings")
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    import django

    django.setup()


@contextmanager
def _valkey() -> Iterator[None]:
    from jobs import queue
    from jobs.services import valkey

    server = subprocess.Popen(valkey.prepare(Path(os.environ["INTRASKILL_HOME"])))
    try:
        deadline = time.monotonic() + READY_S
        while not queue.status().up:
            if time.monotonic() > deadline:
                raise RuntimeError("the queue server did not start")
            time.sleep(0.05)
        yield
    finally:
        server.terminate()
        server.wait()


@contextmanager
def _fleet(hosts: int, hold: float) -> Iterator[None]:
    share = -(-hosts // PROCESSES)
    command = [sys.executable, "-m", "benchmarks.fleet", "--hold", str(hold), "--simulate"]
    processes = [
        subprocess.Popen([*command, str(first), str(min(first + share, hosts))], cwd=ROOT)
        for first in range(0, hosts, share)
    ]
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def _await_hosts(hosts: int) -> None:
    from jobs import placement, queue

    deadline = time.monotonic() + READY_S
    while len(placement.hosts_up()) < hosts or len(queue.status().workers) < 2 * hosts:
        if time.monotonic() > deadline:
            raise RuntimeError(f"only {len(placement.hosts_up())} of {hosts} hosts came up")
        time.sleep(0.5)


def simulate(numbers: range, hold: float) -> None:
    """Be these hosts until SIGTERM: a thread each, with a worker that takes what comes."""
    _django()
    threads = [
        threading.Thread(target=_worker, args=(_name(number), kind, hold), daemon=True)
        for number in numbers
        for kind in ("gpu", "cpu")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _worker(host: str, kind: str, hold: float) -> None:
    from redis import Redis
    from rq import Queue
    from rq.serializers import JSONSerializer

    from jobs import placement, queue
    from jobs.hosts import Registration
    from jobs.worker import WORKER_TTL_S, HostWorker

    name = placement.queue_name(host, kind)
    link = Redis.from_url(queue.url())
    worker = HostWorker(
        [Queue(name, connection=link, serializer=JSONSerializer)],
        name=f"{host}.{kind}",
        connection=link,
        serializer=JSONSerializer,
        worker_ttl=WORKER_TTL_S,
    )
    worker.presence = Registration(worker.name, [name], host=host, gpus=lambda: [GPU])
    worker.register_birth()
    while True:
        found = worker.dequeue_job_and_maintain_ttl(worker.dequeue_timeout)
        if found is None:
            continue
        job, _queue = found
        attempt_id, job_id = job.args
        _hold(host, int(attempt_id), str(job_id), hold if kind == "gpu" else 0.0)
        job.delete()


def _hold(host: str, attempt_id: int, job_id: str, hold: float) -> None:
    """What ``runner.run_attempt`` writes for a stage, with a pause in the place of the work."""
    from django.db import connections, transaction

    from intraskill_web.experiments.flow import advance
    from intraskill_web.experiments.models import Attempt
    from intraskill_web.experiments.moves import move
    from jobs.transitions import State
    from jobs.watch import adopt

    attempt = Attempt.objects.select_related("stage__round__experiment").get(pk=attempt_id)
    if not adopt(attempt, job_id, worker=host, pid=os.getpid(), host=host):
        return
    move(attempt, State.STARTING, job_id=job_id)
    move(attempt, State.RUNNING, job_id=job_id)
    time.sleep(hold)
    with transaction.atomic():
        move(attempt, State.SUCCEEDED, job_id=job_id)
        advance(attempt.stage.round.experiment)
    connections.close_all()


if __name__ == "__main__":
    main()
