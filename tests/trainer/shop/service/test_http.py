"""HTTP in front of the service: statuses, tokens, health, metrics."""

from __future__ import annotations

import http.client
import json
import re
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.trainer.shop.service.conftest import Start
from trainer.errors import InputError
from trainer.shop.profiles import STANDARD
from trainer.shop.service.address import Address, check_service, is_loopback, open_socket
from trainer.shop.service.metrics import exposition
from trainer.shop.service.service import ServiceSettings


def post(
    address: str, body: Any, *, token: str | None = None
) -> tuple[int, dict[str, Any], dict[str, str]]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"{address}/api/shop_agent", data)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer), dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error), dict(error.headers)


def get(address: str, path: str) -> tuple[int, str]:
    with urllib.request.urlopen(address + path) as answer:
        return answer.status, answer.read().decode()


def test_a_reply_stands_under_result(start: Start) -> None:
    status, body, headers = post(start(), {"action": "reset", "idx": 0})
    assert status == 200
    assert list(body) == ["result"]
    assert body["result"]["observation"].startswith("页面：搜索首页")
    assert headers["Content-Type"].startswith("application/json")


@pytest.mark.parametrize(
    ("body", "typed", "legacy"),
    [
        (b"not json", 400, 200),
        (b"[1]", 400, 400),
        (b'{"action": "dance"}', 400, 400),
        (b'{"action": "reset", "idx": 77}', 404, 500),
        (b'{"action": "interact"}', 400, 400),
        (b'{"action": "interact", "env_idx": 0, "lease_id": "x"}', 409, 409),
        (b'{"action": "release_all"}', 403, 403),
        (b"\xff\xfe", 400, 200),
    ],
)
def test_errors_have_typed_statuses_or_the_published_ones(
    start: Start, body: bytes, typed: int, legacy: int
) -> None:
    status, answer, _ = post(start(), body)
    assert status == typed
    assert answer["result"]["error"]
    assert post(start(legacy_statuses=True), body)[0] == legacy


def test_a_full_pool_says_when_to_come_again(start: Start) -> None:
    address = start(slots=1)
    post(address, {"action": "reset", "idx": 0})
    status, body, headers = post(address, {"action": "reset", "idx": 0})
    assert (status, body["result"]["code"]) == (429, "no_free_slot")
    assert int(headers["Retry-After"]) >= 1


def test_tokens_guard_the_service_and_its_admin_calls(start: Start) -> None:
    address = start(token="t", admin_token="root")
    reset = {"action": "reset", "idx": 0}
    assert post(address, reset)[0] == 401
    assert post(address, reset, token="wrong")[0] == 401
    assert post(address, reset, token="t")[0] == 200
    assert post(address, {"action": "release_all"}, token="t")[0] == 403
    assert post(address, {"action": "release_all"}, token="root")[0] == 200
    assert get(address, "/healthz")[0] == 200


def test_health_has_the_published_fields_and_names_the_profile(start: Start) -> None:
    health = json.loads(get(start(STANDARD), "/healthz")[1])
    assert health["ready"] is True
    assert (health["environment_slots"], health["free_slots"], health["tasks"]) == (4, 4, 2)
    assert health["primary_reward"] == "r_strict"
    assert (health["debug_ui"], health["replay_ui"]) == (False, False)
    assert health["environment"]["profile"] == "standard"
    assert health["environment"]["type_terms"] == "han-bigram-latin-number-v1"
    assert len(health["environment"]["catalogue_sha256"]) == 64


def test_metrics_are_well_formed_and_count(start: Start) -> None:
    address = start()
    post(address, {"action": "reset", "idx": 0})
    post(address, b"nonsense")
    text = get(address, "/metrics")[1]
    assert 'shop_requests_total{worker="0",action="reset",status="200"} 1' in text
    assert 'shop_requests_total{worker="0",action="unknown",status="400"} 1' in text
    assert 'shop_slots{worker="0",state="free"} 3' in text
    for line in text.splitlines():
        assert re.fullmatch(r"# TYPE \w+ \w+|\w+\{[^}]*\} [0-9.e+-]+", line), line
    types = [line.split()[2] for line in text.splitlines() if line.startswith("#")]
    assert len(types) == len(set(types))


# --- address


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Bearer \xff\xfe"}, 401),
        ({"Content-Encoding": "gzip"}, 400),
        ({"Content-Encoding": "deflate"}, 400),
    ],
)
def test_strange_headers_are_refused(start: Start, headers: dict[str, str], status: int) -> None:
    connection = http.client.HTTPConnection(start(token="t").removeprefix("http://"))
    sent = {"Authorization": "Bearer t", **headers}
    connection.request("POST", "/api/shop_agent", b'{"action": "reset", "idx": 0}', sent)
    answer = connection.getresponse()
    assert answer.status == status
    assert json.loads(answer.read())["result"]["error"]
    connection.close()


def test_a_body_of_megabytes_is_refused(start: Start) -> None:
    status, body, _ = post(start(), b'{"action": "' + b"x" * (1 << 20) + b'"}')
    assert (status, body["result"]["code"]) == (413, "too_large")


def test_large_counts_keep_every_digit() -> None:
    assert exposition([("shop_requests_total", {"a": "b"}, 12_345_678)]).splitlines() == [
        "# TYPE shop_requests_total counter",
        'shop_requests_total{a="b"} 12345678',
    ]


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("a.b", False)],
)
def test_loopback_is_recognised(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_other_addresses_need_a_token() -> None:
    with pytest.raises(InputError, match="needs a token"):
        check_service(Address("0.0.0.0"), ServiceSettings())
    check_service(Address("0.0.0.0"), ServiceSettings(token="t"))


def test_a_taken_port_is_a_clear_error() -> None:
    taken = open_socket(Address(port=0))
    taken.listen()
    with pytest.raises(InputError, match="cannot listen"):
        open_socket(Address(port=taken.getsockname()[1]))
    taken.close()
