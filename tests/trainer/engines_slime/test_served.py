"""A server is asked once before anything is played, and never for longer or more than is said."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from trainer.engines.endpoint import served
from trainer.engines.endpoint.served import check_served
from trainer.engines.endpoint.settings import EndpointSettings
from trainer.errors import InputError

Answer = Callable[[socket.socket], None]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], EndpointSettings]]:
    """``serve(answer)``: settings of a server whose bytes ``answer`` writes."""
    doors: list[socket.socket] = []

    def start(answer: Answer) -> EndpointSettings:
        door = socket.create_server(("127.0.0.1", 0))
        doors.append(door)

        def talk() -> None:
            with suppress(OSError):
                line, _address = door.accept()
                with line:
                    line.recv(65_536)
                    answer(line)

        threading.Thread(target=talk, daemon=True).start()
        url = f"http://127.0.0.1:{door.getsockname()[1]}/v1"
        return EndpointSettings(base_url=url, model="m")

    yield start
    for door in doors:
        door.close()


def whole(body: bytes) -> Answer:
    def answer(line: socket.socket) -> None:
        line.sendall(HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)

    return answer


def drip(start: bytes) -> Answer:
    """A byte every 20 ms, for as long as somebody reads: no single read ever times out."""

    def answer(line: socket.socket) -> None:
        line.sendall(start)
        while True:
            line.sendall(b" ")
            time.sleep(0.02)

    return answer


@pytest.mark.parametrize("body", [b'{"data": [{"id": "m"}]}', b"no JSON", b"[1]", b"[" * 100_000])
def test_a_server_that_names_the_model_or_nothing_is_believed(
    serve: Callable[[Answer], EndpointSettings], body: bytes
) -> None:
    check_served(serve(whole(body)))


@pytest.mark.parametrize("start", [HEAD + b"X-Slow:", HEAD + b"\r\n"], ids=["head", "body"])
def test_a_server_that_drips_is_left_at_the_deadline(
    serve: Callable[[Answer], EndpointSettings], monkeypatch: pytest.MonkeyPatch, start: bytes
) -> None:
    monkeypatch.setattr(served, "WAIT_S", 0.3)
    settings = serve(drip(start))
    began = time.monotonic()
    with pytest.raises(InputError, match=r"has not answered .*/v1/models whole within 0.3 sec"):
        check_served(settings)
    assert time.monotonic() - began < 3


def test_no_more_is_read_of_an_answer_than_a_list_can_have(
    serve: Callable[[Answer], EndpointSettings],
) -> None:
    sent = 0

    def flood(line: socket.socket) -> None:
        nonlocal sent
        line.sendall(HEAD + b"\r\n")
        while True:
            sent += line.send(b"x" * 65_536)

    settings = serve(flood)
    with pytest.raises(InputError, match="longer than 4 MB") as caught:
        check_served(settings)
    assert sent < 64 * 2**20 and settings.base_url in str(caught.value)


def test_a_long_list_is_read(serve: Callable[[Answer], EndpointSettings]) -> None:
    names = [{"id": f"model-{number}", "object": "model" * 20} for number in range(10_000)]
    with pytest.raises(InputError, match="is not served at"):
        check_served(serve(whole(json.dumps({"data": names}).encode())))
