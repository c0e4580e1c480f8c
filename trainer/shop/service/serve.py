"""Starts the service: one process, or several workers that share one read-only catalogue.

Workers are forked after the world was loaded, so its memory is shared. A worker that dies is
started again with empty slots; its clients get ``lease_expired``. SIGTERM and Ctrl-C end all."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from aiohttp import web

from trainer.shop.service.address import Address, check_service, open_shared_socket, open_socket
from trainer.shop.service.guard import allow_open_files, quiet_logs
from trainer.shop.service.http import Endpoint
from trainer.shop.service.peers import Peers, socket_name
from trainer.shop.service.service import Service, ServiceSettings
from trainer.shop.service.supervisor import Supervisor
from trainer.shop.world import World

_SWEEP_SECONDS = 1.0
_BACKLOG = 1024


def serve(
    world: World,
    settings: ServiceSettings,
    address: Address,
    *,
    announce: Callable[[str, int], None],
) -> int:
    """Serve until stopped; ``announce(host, port)`` is called once clients can connect."""
    check_service(address, settings)
    bound = open_socket(address)  # keeps the port while workers come and go
    address = replace(address, port=bound.getsockname()[1])
    allow_open_files()
    gc.freeze()  # the world is never garbage; forked workers then do not touch its pages
    if address.workers == 1:
        bound.listen(_BACKLOG)
        announce(address.host, address.port)
        asyncio.run(run_worker(world, settings, bound, Peers()))
        return 0
    with tempfile.TemporaryDirectory(prefix="shop-") as name:
        folder = Path(name)

        def work(worker: int) -> None:
            peers = Peers(worker, address.workers, folder)
            asyncio.run(run_worker(world, settings, open_shared_socket(address), peers))

        ready = [folder / socket_name(worker) for worker in range(address.workers)]
        return Supervisor(work, ready).run(lambda: announce(address.host, address.port))


async def run_worker(
    world: World, settings: ServiceSettings, bound: socket.socket, peers: Peers
) -> None:
    """One worker until it is told to stop."""
    numbers = range(peers.worker, settings.slots, peers.workers)
    service = Service(world, settings, numbers=numbers)
    endpoint = Endpoint(service, peers)
    stop = asyncio.Event()
    quiet_logs(asyncio.get_running_loop())
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
    tasks = [asyncio.create_task(service.pool.sweep(_SWEEP_SECONDS))]
    if public.server is not None:
        sweep = endpoint.connections.sweep(public.server, _SWEEP_SECONDS)
        tasks.append(asyncio.create_task(sweep))
    if peers.workers > 1:
        tasks.append(asyncio.create_task(_stop_with_parent(stop)))
    await stop.wait()
    for task in tasks:
        task.cancel()
    await peers.close()
    for runner in runners:
        await runner.cleanup()


async def _stop_with_parent(stop: asyncio.Event) -> None:
    """A worker whose supervisor was killed ends too, instead of holding the port for ever."""
    parent = os.getppid()
    while os.getppid() == parent:
        await asyncio.sleep(_SWEEP_SECONDS)
    stop.set()
