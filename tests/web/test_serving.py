"""Threads stay with a connection that goes on asking, and leave one that pauses to others."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

APP = """
import threading
from intraskill_web.serving import LingeringWorker
class Hasty(LingeringWorker):
    PATIENCE_S = 1
def application(environ, start_response):
    body = str(threading.get_ident()).encode()
    environ["wsgi.input"].read()
    if environ["PATH_INFO"] == "/long":
        body *= 2_000_000
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """A server of six threads whose answers name the thread; what it logs is in ``log``."""
    (tmp_path / "app.py").write_text(APP)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found = probe.getsockname()[1]
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "gunicorn", "app", "--bind", f"127.0.0.1:{found}",
               "--worker-class", "app.Hasty", "--threads", "6",
               "--graceful-timeout", "3", "--log-level", "warning",
               "--no-control-socket"]  # fmt: skip
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": f"{tmp_path}:{root}"}, stderr=log
        )
    try:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", found), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield found
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == 0


def asked(connection: http.client.HTTPConnection) -> bytes:
    connection.request("GET", "/")
    return connection.getresponse().read()


def test_a_connection_that_goes_on_asking_keeps_its_thread(port: int) -> None:
    one = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    threads = [asked(one) for _ in range(50)]
    kept = sum(a == b for a, b in pairwise(threads))
    assert kept >= 35, kept


def test_more_connections_than_threads_are_all_answered_soon(port: int) -> None:
    many = [http.client.HTTPConnection("127.0.0.1", port, timeout=10) for _ in range(20)]
    begun = time.monotonic()
    for _ in range(5):
        assert all(asked(one) for one in many)
    assert time.monotonic() - begun < 5


def test_requests_sent_at_once_are_all_answered(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), 10) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
        raw.settimeout(5)
        found = b""
        while found.count(b"200 OK") < 3:
            found += raw.recv(65536)
    assert found.count(b"200 OK") == 3


@pytest.mark.parametrize(
    "sent",
    [b"GE", b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n"],
    ids=["half a line", "an answer not taken"],
)
def test_clients_that_fall_silent_give_their_threads_back(port: int, sent: bytes) -> None:
    silent = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(6)]
    for one in silent:
        one.sendall(sent)
    time.sleep(0.3)
    assert asked(http.client.HTTPConnection("127.0.0.1", port, timeout=10))
    for one in silent:
        one.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"GE",
        b"GET / HTTP/1.1\r\nHost: x\r\nCoo",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf",
        b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=["half a line", "half the headers", "half a body", "half a chunk", "an answer not taken"],
)
def test_a_client_that_is_cut_off_is_one_line_of_the_log(
    port: int, tmp_path: Path, sent: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", port), 10) as silent:
        silent.sendall(sent)
        ends = time.monotonic() + 10
        while not (told := (tmp_path / "log").read_text()) and time.monotonic() < ends:
            time.sleep(0.05)
    (line,) = told.splitlines()
    assert line.endswith("[WARNING] cut off a client silent for 1 s")


def test_connections_opened_ahead_of_need_hold_no_thread(port: int) -> None:
    ahead = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(12)]
    begun = time.monotonic()
    assert asked(http.client.HTTPConnection("127.0.0.1", port, timeout=20))
    assert time.monotonic() - begun < 2
    ahead[0].sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"200 OK" in ahead[0].recv(65536)
    for one in ahead:
        one.close()


def test_a_server_that_is_asked_to_end_does_so_beside_an_open_connection(port: int) -> None:
    one = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    assert asked(one)
