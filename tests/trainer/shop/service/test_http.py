"""HTTP in front of the service: statuses, tokens, health, metrics; no agent text gives a 5xx."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.trainer.shop.service.conftest import Start
from trainer.errors import InputError
from trainer.shop.profiles import STANDARD
from trainer.shop.service.address import Address, check_service, is_loopback, open_socket
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


TEXTS = st.text(max_size=60) | st.sampled_from(
    ["search[<r>]", "search[<c>]", "search[search_results]", "click[", "\ud800", "\x00", "a\\nb"]
)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(TEXTS | ANY, min_size=1, max_size=35))
def test_no_agent_text_gives_a_5xx(start: Start, texts: list[Any]) -> None:
    address = ADDRESSES.setdefault(id(start), "") or start(lease_ttl=60, slots=64)
    ADDRESSES[id(start)] = address
    _, body, _ = post(address, {"action": "reset", "idx": 0})
    lease = {name: body["result"][name] for name in ("env_idx", "lease_id")}
    for text in texts:
        status, body, _ = post(address, {"action": "interact", "response": text, **lease})
        assert status == 200
        if body["result"]["done"]:
            break
    assert post(address, {"action": "release_one", **lease})[0] == 200


ADDRESSES: dict[int, str] = {}


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.dictionaries(st.sampled_from(["action", "idx", "env_idx", "lease_id", "x"]), ANY))
def test_no_request_gives_a_5xx(start: Start, request_: dict[str, Any]) -> None:
    address = ADDRESSES.setdefault(id(start), "") or start(slots=1)
    ADDRESSES[id(start)] = address
    assert post(address, request_)[0] < 500


# --- address


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
