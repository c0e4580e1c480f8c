"""The client: towards our service, and towards one that behaves as the published one."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import pytest

from tests.trainer.shop.service.conftest import Published, Start, small_world
from tests.trainer.shop.service.lossy import LossyProxy
from trainer.errors import InputError
from trainer.shop.client import ShopClient, ShopServiceError
from trainer.shop.profiles import STANDARD
from trainer.shop.remote import RemoteSession
from trainer.shop.session import ShopSession
from trainer.shop.types import Action

PAGE = {"observation": "页面", "observation_state": {"observation_version": "v7"}}
RESET = {**PAGE, "task_instruction": "买", "env_idx": 0, "lease_id": "a" * 32}


def test_an_episode_over_http_equals_one_in_process(start: Start) -> None:
    actions = [
        Action("search", "洗衣机"),
        Action("click", "932040992888"),
        Action("click", "nonsense"),
        Action("click", "颜色分类=白色"),
        Action("click", "尺码=大号"),
        Action("click", "buy now"),
    ]
    local = ShopSession(small_world(STANDARD), 0)
    with ShopClient(start(STANDARD)) as client:
        remote = RemoteSession(client, 0)
        assert remote.reset() == local.reset()
        assert remote.task.instruction_simple == local.task.instruction_simple
        for action in actions:
            assert remote.step(action) == local.step(action)
        assert remote.done


def test_termination_over_http_equals_one_in_process(start: Start) -> None:
    local = ShopSession(small_world(STANDARD), 1)
    with ShopClient(start(STANDARD), persona=False) as client:
        remote = RemoteSession(client, 1)
        assert remote.reset() == local.reset()
        assert remote.terminate("context_limit") == local.terminate("context_limit")
        remote.close()
        remote.reset()


def test_one_client_holds_one_lease(start: Start) -> None:
    with ShopClient(start()) as client:
        client.reset(0)
        with pytest.raises(ShopServiceError, match="release it first"):
            client.reset(1)
        client.release()
        client.reset(1)


def test_a_step_needs_an_episode(start: Start) -> None:
    with ShopClient(start()) as client, pytest.raises(ShopServiceError, match="no episode"):
        client.step("search[x]")


def test_errors_carry_status_and_code(start: Start) -> None:
    with ShopClient(start()) as client, pytest.raises(ShopServiceError) as caught:
        client.reset(99)
    assert (caught.value.status, caught.value.code) == (404, "unknown_task")


def test_tokens_are_sent(start: Start) -> None:
    address = start(token="t")
    with ShopClient(address, token="t") as client:
        client.reset(0)
    with ShopClient(address) as client, pytest.raises(ShopServiceError) as caught:
        client.reset(0)
    assert caught.value.status == 401


def test_environments_are_not_mixed(start: Start) -> None:
    address = start(STANDARD)
    with ShopClient(address) as client:
        client.require(small_world(STANDARD).identity())
        with pytest.raises(InputError, match="another profile"):
            client.require(small_world().identity())
        other = {**small_world(STANDARD).identity(), "catalogue_sha256": "0"}
        with pytest.raises(InputError, match="another catalogue_sha256"):
            client.require(other)


def test_a_full_pool_is_waited_for(start: Start) -> None:
    address = start(slots=1)
    with ShopClient(address) as first, ShopClient(address) as second:
        first.reset(0)
        threading.Timer(0.3, first.release).start()
        assert second.reset(1)["idx"] == 1


def test_a_dead_client_gives_its_slot_back(start: Start) -> None:
    now = [100.0]
    address = start(slots=1, lease_ttl=10, clock=lambda: now[0])
    ShopClient(address).reset(0)
    with ShopClient(address) as client:
        now[0] += 10
        assert client.reset(1)["env_idx"] == 0


def test_lost_replies_to_reset_and_step_are_recovered(start: Start) -> None:
    address = start(slots=1)
    proxy = LossyProxy(address)
    with ShopClient(proxy.address) as client:
        proxy.lose = 1
        client.reset(0)
        proxy.lose = 2
        reply = client.step("search[洗衣机]")
        assert reply["observation_state"]["page_type"] == "search_results"
        proxy.lose = 1
        reply = client.step("click[932040992888]")
        assert reply["observation_state"]["page_type"] == "product_detail"
        proxy.lose = 1
        assert client.terminate("action_limit")["done"] is True
    proxy.stop()


def test_a_lost_reply_to_a_release_is_no_failure(start: Start) -> None:
    address = start(slots=1)
    proxy = LossyProxy(address)
    client = ShopClient(proxy.address)
    client.reset(0)
    proxy.lose = 1
    client.release()
    with ShopClient(address) as other:
        other.reset(1)
    client.close()
    proxy.stop()


def test_a_renewed_lease_outlives_its_time(start: Start) -> None:
    now = [100.0]
    address = start(slots=1, lease_ttl=10, clock=lambda: now[0])
    with ShopClient(address) as client:
        with pytest.raises(ShopServiceError, match="no episode"):
            client.renew()
        client.reset(0)
        for _ in range(3):
            now[0] += 9
            client.renew()
        assert client.step("search[x]")["done"] is False
        now[0] += 10
        with pytest.raises(ShopServiceError) as caught:
            client.step("search[x]")
        assert (caught.value.status, caught.value.code) == (410, "lease_expired")


@pytest.mark.parametrize("argument", ["两\n行", "a\\nb", "]click[", " ", "\ud800", "颜色 =白"])
def test_a_structured_action_arrives_as_it_is(start: Start, argument: str) -> None:
    local = ShopSession(small_world(STANDARD), 0)
    with ShopClient(start(STANDARD)) as client:
        remote = RemoteSession(client, 0)
        assert remote.reset() == local.reset()
        for action in (Action("click", argument), Action("search", argument)):
            assert remote.step(action) == local.step(action)


@pytest.mark.parametrize("address", ["localhost:5700", "ftp://a", "http://", "http://a:x"])
def test_an_address_must_be_one(address: str) -> None:
    with pytest.raises(InputError, match="http or https"):
        ShopClient(address)


# --- the published service


def client_of(service: Published) -> ShopClient:
    return ShopClient(service.address)


def test_the_published_service_gets_exactly_the_published_requests(
    published_service: Published,
) -> None:
    end = {**PAGE, "done": True, "reward": 0.0, "termination_reason": "action_limit"}
    published_service.replies = [
        (200, {"result": RESET}),
        (200, {"result": {**PAGE, "done": False, "reward": 0.0}}),
        (200, {"result": end}),
        (200, {"result": {"message": "ok"}}),
    ]
    with client_of(published_service) as client:
        client.reset(19)
        client.step("search[冰箱]")
        client.terminate("action_limit")
    lease = {"env_idx": 0, "lease_id": "a" * 32}
    assert published_service.requests == [
        {
            "action": "reset",
            "idx": 19,
            "if_persona": True,
            "include_private_goal": False,
            "interaction_mode": "single_turn",
        },
        {"action": "interact", "response": "search[冰箱]", **lease},
        {"action": "terminate", "termination_reason": "action_limit", **lease},
        {"action": "release_one", **lease},
    ]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, {"result": {"error": "bad"}}),
        (200, {"error": "bad"}),
        (200, [1]),
        (200, b"<html>"),
        (500, b"<html>"),
        (500, {"result": {}}),
        (409, {"result": {"error": "stale"}}),
        (200, {"result": {}}),
        (200, {"result": {**RESET, "observation": 3}}),
        (200, {"result": {**RESET, "observation_state": None}}),
        (200, {"result": {**RESET, "observation_state": {}}}),
        (200, {"result": {**RESET, "task_instruction": None}}),
    ],
)
def test_a_bad_reset_reply_is_refused_and_never_sent_again(
    published_service: Published, status: int, body: Any
) -> None:
    published_service.replies = [(status, body)]
    with client_of(published_service) as client, pytest.raises(ShopServiceError):
        client.reset(0)
    assert len(published_service.requests) == 1


def test_the_versions_of_the_published_service_are_compared(
    published_service: Published,
) -> None:
    identity = small_world().identity()
    published_service.health["environment_version"] = identity["environment_version"]
    with client_of(published_service) as client:
        client.require(identity)
        published_service.health["environment_version"] = "v9"
        with pytest.raises(InputError, match="another environment_version"):
            client.require(identity)


def test_a_refused_termination_reason_is_noticed(published_service: Published) -> None:
    published_service.replies = [
        (200, {"result": RESET}),
        (200, {"result": {**PAGE, "done": True, "termination_reason": "purchase"}}),
        (200, {"result": {}}),
    ]
    with client_of(published_service) as client:
        client.reset(0)
        with pytest.raises(ShopServiceError, match="asked to end"):
            client.terminate("generation_length")


def test_release_forgets_the_lease_even_when_it_fails(published_service: Published) -> None:
    published_service.replies = [
        (200, {"result": RESET}),
        (409, {"result": {"error": "stale"}}),
        (200, {"result": RESET}),
        (200, {"result": {}}),
    ]
    with client_of(published_service) as client:
        client.reset(0)
        with pytest.raises(ShopServiceError):
            client.release()
        client.reset(1)


def test_a_reset_may_take_any_time_and_a_step_may_not(published_service: Published) -> None:
    published_service.replies = [(200, {"result": RESET}), (200, {"result": {}})] * 2
    published_service.replies += [(200, {"result": RESET}), (200, {"result": {**PAGE}})] * 2
    published_service.delay = 0.3
    client = ShopClient(published_service.address, timeout=0.1)
    for _ in range(2):
        client.reset(0)
        with pytest.raises(ShopServiceError):
            client.release()
    client.reset(0)
    with pytest.raises(ShopServiceError, match="timed out"):
        client.step("search[x]")
    assert [request["action"] for request in published_service.requests[-2:]] == [
        "reset",
        "interact",
    ]


def test_a_connection_that_the_service_closed_is_not_written_to() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    served = []

    def serve() -> None:
        for body in (b'{"ready": true}', b'{"ready": false}'):
            connection, _ = listener.accept()
            with connection:
                served.append(connection.recv(1 << 16))
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
                connection.sendall(head.encode() + body)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    client = ShopClient(f"http://127.0.0.1:{listener.getsockname()[1]}")
    assert client.health() == {"ready": True}
    time.sleep(0.1)
    assert client.health() == {"ready": False}
    thread.join(5)
    listener.close()
    assert len(served) == 2


def test_an_unreachable_service_is_a_technical_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with ShopClient(f"http://127.0.0.1:{port}") as client, pytest.raises(ShopServiceError):
        client.reset(0)
