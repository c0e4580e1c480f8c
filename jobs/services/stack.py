"""Everything one home needs to run: queue, database, static files, first admin, services.

``manage.py up`` runs the whole of it; ``manage.py demo`` runs it without pages when no ``up`` does.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.db import OperationalError

from intraskill_web import home as home_folder
from intraskill_web.core.published_files import publish_static_files
from jobs import park, queue
from jobs.services import instance, valkey
from jobs.services.ports import free_port
from jobs.services.supervisor import Service, Supervisor
from trainer.errors import InputError

WORKER = "worker"
ADMIN_PASSWORD = "admin-password"  # the name of the secret, not the secret
READY_S = 60.0


def printer() -> Callable[[str], None]:
    """A ``print`` that several threads may use."""
    lock = threading.Lock()

    def say(line: str) -> None:
        with lock:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    return say


@contextmanager
def running_stack(
    home: Path, say: Callable[[str], None], *, port: int | None
) -> Iterator[Supervisor]:
    """Run the services of ``home`` while the block runs; ``port`` None leaves the pages out.

    At the end, stages that run are stopped so that they can be continued, and every process that
    was started here is ended. Raises InputError when the home is already run.
    """
    with instance.hold(home):
        supervisor = Supervisor(home, Path(settings.BASE_DIR), _environment(), say)
        try:
            _start(supervisor, port)
            yield supervisor
        finally:
            _stop(supervisor)


def _start(supervisor: Supervisor, port: int | None) -> None:
    home = supervisor.home
    if not settings.REDIS_URL:
        supervisor.start(Service("queue", valkey.prepare(home), is_leant_on=True))
    _migrate()
    if port is not None:
        call_command("translations", verbosity=0)
        publish_static_files()
    _await_queue(supervisor)
    beside = port is not None  # pages ask for replays and exports, which wait for no stage
    for number in range(settings.INTRASKILL_WORKERS):
        name = WORKER if number == 0 else f"{WORKER}-{number + 1}"
        supervisor.start(Service(name, _worker("stages" if beside else "")))
    if beside:
        supervisor.start(Service(f"{WORKER}-side", _worker("work")))
    supervisor.start(Service("reconciler", _manage("reconcile")))
    if port is not None:
        _start_web(supervisor, port)


def _migrate() -> None:
    try:
        call_command("migrate", interactive=False, verbosity=0)
    except OperationalError as error:
        raise InputError(
            f"the database cannot be used: {' '.join(str(error).split())}",
            field="DATABASE_URL",
            remedy="Start that server and check name and password, or unset it to use SQLite",
        ) from error


def _start_web(supervisor: Supervisor, wanted: int) -> None:
    host = settings.INTRASKILL_HOST
    try:
        port = free_port(host, wanted)
    except OSError as error:
        raise InputError(
            str(error), field="INTRASKILL_PORT", value=wanted, remedy="Set another port"
        ) from error
    if port != wanted:
        supervisor.say(f"port {wanted} is taken; using {port}")
    supervisor.facts["address"] = f"http://{host}:{port}/"
    supervisor.start(
        Service(
            "web",
            (
                *(sys.executable, "-m", "gunicorn", "intraskill_web.wsgi:application"),
                *("--bind", f"{host}:{port}", "--workers", "1"),
                *("--worker-class", "intraskill_web.serving.LingeringWorker"),
                *("--threads", str(settings.INTRASKILL_WEB_THREADS), "--timeout", "60"),
                *("--graceful-timeout", "3", "--log-level", "warning"),
                "--no-control-socket",  # it lies outside the home, and is one for all homes
            ),
        )
    )
    _await_port(supervisor, host, port)


def _await_queue(supervisor: Supervisor) -> None:
    deadline = time.monotonic() + READY_S
    while not (status := queue.status()).up:
        if time.monotonic() > deadline:
            raise InputError(
                f"the queue does not answer: {status.error}",
                field="REDIS_URL",
                remedy="Start that server, or unset REDIS_URL to use the embedded one",
            )
        supervisor.watch()
        time.sleep(0.05)


def _await_port(supervisor: Supervisor, host: str, port: int) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        try:
            socket.create_connection((host, port), timeout=1).close()
        except OSError:
            supervisor.watch()
            time.sleep(0.1)
        else:
            return
    raise InputError(f"the web server did not open port {port} in {READY_S:g} s")


def _stop(supervisor: Supervisor) -> None:
    """Workers take no new work, stages are parked while watchers live, then all services end."""
    supervisor.stopping = True
    for service in supervisor.services:
        if service.name.startswith(WORKER):
            supervisor.ask_to_end(service)
    if any(service.name.startswith(WORKER) for service in supervisor.services):
        left = park.park()
        if left:
            supervisor.say(f"{left} stages still run; the next start takes them up again")
    supervisor.stop()


def first_admin(home: Path) -> str | None:
    """Make the user ``admin`` where there is no user at all; returns the new password once.

    It is random, hashed in the database, and kept in the home's closed ``secrets`` folder so that
    whoever owns the home can find it again.
    """
    if User.objects.exists():
        return None
    password = home_folder.secret(home, ADMIN_PASSWORD, nbytes=12)
    admin = User.objects.create_superuser("admin", password=password)
    admin.groups.add(Group.objects.get(name="admin"))
    return password


def _worker(kinds: str) -> tuple[str, ...]:
    return _manage("worker") + (("--kinds", kinds) if kinds else ())


def _manage(command: str) -> tuple[str, ...]:
    return (sys.executable, "-u", str(Path(settings.BASE_DIR) / "manage.py"), command)


def _environment() -> dict[str, str]:
    return {
        **os.environ,
        "INTRASKILL_HOME": str(settings.INTRASKILL_HOME),
        "DJANGO_SETTINGS_MODULE": os.environ.get(
            "DJANGO_SETTINGS_MODULE", "intraskill_web.settings"
        ),
        "PYTHONUNBUFFERED": "1",
    }
