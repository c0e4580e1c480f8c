"""A service in a thread, and one that answers as the published service does."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from aiohttp import web

from tests.trainer.shop.factories import product, task, world
from trainer.shop.profiles import COMPAT
from trainer.shop.service.http import Endpoint
from trainer.shop.service.peers import Peers
from trainer.shop.service.service import Service, ServiceSettings
from trainer.shop.world import World

Start = Callable[..., str]


def small_world(profile: Any = COMPAT) -> World:
    tasks = (task(persona={"用户ID": "u1"}), task(task_id=1))
    return world([product()], *tasks, profile=profile)


class Running:
    """A service on an event loop of its own."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.port = 0
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._thread.start()
        assert self._started.wait(10)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        application = Endpoint(self.service, Peers()).application()
        runner = web.AppRunner(
            application, access_log=None, handler_cancellation=True, shutdown_timeout=0.1
        )
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = runner.addresses[0][1]
        self._started.set()
        await self._stop.wait()
        await runner.cleanup()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a service with settings; returns its address."""
    running: list[Running] = []

    def go(profile: Any = COMPAT, clock: Any = time.monotonic, **settings: Any) -> str:
        service = Service(
            small_world(profile),
            ServiceSettings(**{"slots": 4, "reset_wait": 0.05, **settings}),
            clock=clock,
        )
        running.append(Running(service))
        return f"http://127.0.0.1:{running[-1].port}"

    yield go
    for one in running:
        one.stop()


class Published:
    """A stand-in for the published service: scripted replies, a record of what was asked."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.replies: list[tuple[int, Any]] = []
        self.health: dict[str, Any] = {"ready": True, "environment_slots": 1}
        self.delay = 0.0
        published = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._send(200, published.health)

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                published.requests.append(json.loads(self.rfile.read(length)))
                time.sleep(published.delay)
                self._send(*published.replies.pop(0))

            def _send(self, status: int, value: Any) -> None:
                data = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                with contextlib.suppress(BrokenPipeError):  # the client gave up
                    self.wfile.write(data)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def published_service() -> Iterator[Published]:
    service = Published()
    yield service
    service.stop()
