"""Strangers cannot wear the service out: typed refusals, no connection held, no log filled."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import socket
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.trainer.shop.service.conftest import Start
from trainer.shop.service import http as service_http
from trainer.shop.service.guard import Connections, _NoFault, quiet_logs
from trainer.shop.service.supervisor import Supervisor


def connect(address: str, sent: bytes) -> socket.socket:
    parts = urlsplit(address)
    connection = socket.create_connection((str(parts.hostname), int(parts.port or 0)), timeout=5)
    connection.sendall(sent)
    return connection


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/api/shop_agent", 405, "method_not_allowed"),
        ("DELETE", "/healthz", 405, "method_not_allowed"),
    ],
)
def test_the_router_refuses_in_the_shape_of_every_other_refusal(
    start: Start, method: str, path: str, status: int, code: str
) -> None:
    connection = http.client.HTTPConnection(urlsplit(start()).netloc, timeout=5)
    connection.request(method, path)
    reply = connection.getresponse()
    assert (reply.status, json.loads(reply.read())["result"]["code"]) == (status, code)
    assert (reply.getheader("Allow") is not None) == (status == 405)


def test_a_body_that_does_not_arrive_is_not_waited_for_for_ever(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_http, "BODY_SECONDS", 0.1)
    head = b"POST /api/shop_agent HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"
    with connect(start(), head) as connection:
        reply = connection.recv(1000)
    assert reply.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"request_timeout"' in reply


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Connection:
    closed = False

    def force_close(self) -> None:
        self.closed = True


def test_only_connections_without_a_request_are_closed() -> None:
    clock, silent, busy, gone = Clock(), Connection(), Connection(), Connection()
    connections = Connections(idle=10.0, clock=clock)
    server: Any = SimpleNamespace(connections=[silent, busy, gone])
    assert connections.close_idle(server) == 0

    async def long_request(request: Any) -> Any:
        server.connections = [silent, busy]
        clock.now = 11.0
        assert connections.close_idle(server) == 1
        assert (silent.closed, busy.closed, gone.closed) == (True, False, False)

    request: Any = SimpleNamespace(protocol=busy)
    asyncio.run(Connections.middleware(connections, request, long_request))
    server.connections = [busy]
    clock.now = 20.9
    assert connections.close_idle(server) == 0
    clock.now = 21.0
    assert connections.close_idle(server) == 1


@pytest.fixture
def server_log() -> Iterator[logging.Logger]:
    log = logging.getLogger("aiohttp.server")
    yield log
    for one in [one for one in log.filters if isinstance(one, _NoFault)]:
        log.removeFilter(one)


def test_malformed_requests_fill_no_log(
    start: Start, server_log: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    address = start()
    server_log.addFilter(_NoFault())
    gzip = b"POST /api/shop_agent HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\n"
    for bad in (
        b"\x00\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        gzip + b"Content-Length: 2\r\n\r\nxx",
    ):
        with connect(address, bad) as connection:
            assert b" 400 " in connection.recv(1000)
    time.sleep(0.1)
    assert not caplog.records
    try:
        raise RuntimeError("a fault of ours")
    except RuntimeError:
        server_log.exception("kept")
    assert [record.message for record in caplog.records] == ["kept"]


def test_a_thousand_failures_to_accept_are_told_once(
    server_log: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    loop = asyncio.new_event_loop()
    try:
        quiet_logs(loop)
        for _ in range(1000):
            loop.call_exception_handler(
                {
                    "message": "socket.accept() out of system resource",
                    "exception": OSError(24, "Too many open files"),
                }
            )
        assert [record.getMessage() for record in caplog.records] == [
            "no connection can be accepted: [Errno 24] Too many open files"
        ]
        loop.call_exception_handler({"message": "something else"})
        assert caplog.records[-1].getMessage() == "something else"
    finally:
        loop.close()


def test_a_worker_is_started_again_as_soon_as_there_is_a_process_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    supervisor = Supervisor(lambda worker: None, [])
    monkeypatch.setattr("trainer.shop.service.supervisor.time.sleep", lambda seconds: None)
    answers = iter([OSError(11, "no process"), OSError(11, "no process"), None])
    started: list[int] = []

    def start(worker: int) -> None:
        if (answer := next(answers)) is not None:
            raise answer
        started.append(worker)

    monkeypatch.setattr(supervisor, "_start", start)
    supervisor._start_again(3)
    assert started == [3]
