"""Starts the service: one process, or several workers that share one read-only catalogue.

Workers are forked after the world was loaded, so its memory is shared. A worker that dies is
started again with empty slots; its clients get ``lease_expired``. SIGTERM and Ctrl-C end all."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import logging
import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from trainer.errors import InputError
from trainer.shop.service.http import Endpoint
from trainer.shop.service.peers import Peers, socket_name
from trainer.shop.service.service import Service, ServiceSettings
from trainer.shop.world import World

_SWEEP_SECONDS = 1.0
_BACKLOG = 1024
_START_SECONDS = 60.0
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Address:
    """Where the service listens. Port 0 lets the system choose."""

    host: str = "127.0.0.1"
    port: int = 5700
    workers: int = 1


def check_address(address: Address, settings: ServiceSettings) -> None:
    """Refuse to be open to a network without a token."""
    if not is_loopback(address.host) and settings.token is None:
        raise InputError(
            "a service that others can reach needs a token",
            field="--host",
            value=address.host,
            remedy="Name a variable with --token-env, or bind to 127.0.0.1",
        )
    if not 1 <= address.workers <= settings.slots:
        raise InputError(
            "needs at least one slot for each worker", field="--workers", value=address.workers
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach ``host``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def open_socket(address: Address) -> socket.socket:
    """A bound socket that several workers may share. Raises InputError for a taken port."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        if address.port:
            probe = socket.socket(family, socket.SOCK_STREAM)
            with contextlib.closing(probe):
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((address.host, address.port))
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if address.workers > 1:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((address.host, address.port))
    except OSError as error:
        bound.close()
        raise InputError(
            f"cannot listen: {error.strerror}",
            field="--port",
            value=f"{address.host}:{address.port}",
            remedy="Choose another port",
        ) from error
    return bound


def serve(
    world: World,
    settings: ServiceSettings,
    address: Address,
    *,
    announce: Callable[[str, int], None],
) -> int:
    """Serve until stopped; ``announce(host, port)`` is called once clients can connect."""
    check_address(address, settings)
    bound = open_socket(address)
    address = Address(address.host, bound.getsockname()[1], address.workers)
    gc.freeze()  # the world is never garbage; forked workers then do not touch its pages
    if address.workers == 1:
        bound.listen(_BACKLOG)
        announce(address.host, address.port)
        asyncio.run(run_worker(world, settings, bound, Peers()))
        return 0
    with tempfile.TemporaryDirectory(prefix="shop-") as folder:
        supervisor = _Supervisor(world, settings, address, reserved=bound, folder=Path(folder))
        return supervisor.run(announce)


async def run_worker(
    world: World, settings: ServiceSettings, bound: socket.socket, peers: Peers
) -> None:
    """One worker until it is told to stop."""
    numbers = range(peers.worker, settings.slots, peers.workers)
    service = Service(world, settings, numbers=numbers)
    endpoint = Endpoint(service, peers)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    public = web.AppRunner(
        endpoint.application(), access_log=None, handler_cancellation=True, shutdown_timeout=2
    )
    await public.setup()
    runners = [public]
    await web.SockSite(public, bound, backlog=_BACKLOG).start()
    if peers.workers > 1:
        private = web.AppRunner(
            endpoint.internal_application(), access_log=None, handler_cancellation=True
        )
        await private.setup()
        runners.append(private)
        peers.socket(peers.worker).unlink(missing_ok=True)
        await web.UnixSite(private, str(peers.socket(peers.worker))).start()
    sweeper = asyncio.create_task(service.pool.sweep(_SWEEP_SECONDS))
    await stop.wait()
    sweeper.cancel()
    await peers.close()
    for runner in runners:
        await runner.cleanup()


class _Supervisor:
    """Keeps the workers alive."""

    def __init__(
        self,
        world: World,
        settings: ServiceSettings,
        address: Address,
        *,
        reserved: socket.socket,
        folder: Path,
    ) -> None:
        """``reserved`` keeps the port while workers come and go; it never listens."""
        self._world = world
        self._settings = settings
        self._address = address
        self._reserved = reserved
        self._folder = folder
        self._workers: dict[int, int] = {}  # process id → worker number
        self._stopping = False

    def run(self, announce: Callable[[str, int], None]) -> int:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        for worker in range(self._address.workers):
            self._start(worker)
        self._wait_for_workers()
        announce(self._address.host, self._address.port)
        while self._workers:
            try:
                pid, status = os.wait()
            except InterruptedError:
                continue
            worker = self._workers.pop(pid)
            if not self._stopping:
                code = os.waitstatus_to_exitcode(status)
                _LOG.error("worker %d ended with %d; starting it again", worker, code)
                self._start(worker)
        return 0

    def _wait_for_workers(self) -> None:
        """A worker opens its private socket last."""
        sockets = [self._folder / socket_name(n) for n in range(self._address.workers)]
        give_up = time.monotonic() + _START_SECONDS
        while not all(path.exists() for path in sockets) and time.monotonic() < give_up:
            time.sleep(0.02)

    def _start(self, worker: int) -> None:
        pid = os.fork()
        if pid:
            self._workers[pid] = worker
            return
        code = 70
        try:
            self._work(worker)
            code = 0
        finally:
            os._exit(code)

    def _work(self, worker: int) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        bound = open_shared_socket(self._address)
        peers = Peers(worker, self._address.workers, self._folder)
        asyncio.run(run_worker(self._world, self._settings, bound, peers))

    def _stop(self, number: int, frame: object) -> None:
        self._stopping = True
        for pid in self._workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)


def open_shared_socket(address: Address) -> socket.socket:
    """One worker's own socket on the common port."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.bind((address.host, address.port))
    return bound
