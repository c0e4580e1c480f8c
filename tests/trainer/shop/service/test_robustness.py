"""Nothing that a client sends breaks the service, and nothing that gets lost changes an episode."""

from __future__ import annotations

import http.client
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trainer.shop.service.conftest import Running
from tests.trainer.shop.service.crowd import CLIENTS, at_once, one_by_one
from tests.trainer.shop.service.lossy import LossyProxy
from tests.trainer.shop.test_fuzz import STEPS, TEXTS, WORLDS
from trainer.shop.action_text import read_action
from trainer.shop.client import ShopClient
from trainer.shop.remote import RemoteSession
from trainer.shop.service.service import Service, ServiceSettings
from trainer.shop.session import ShopSession
from trainer.shop.types import Action, Observation

SHOP = WORLDS["standard"]


@pytest.fixture(scope="module")
def addresses() -> Iterator[dict[str, str]]:
    """A service of each profile."""
    running = {
        name: Running(Service(world, ServiceSettings(slots=CLIENTS, reset_wait=20)))
        for name, world in WORLDS.items()
    }
    yield {name: f"http://127.0.0.1:{one.port}" for name, one in running.items()}
    for one in running.values():
        one.stop()


# --- hostile requests

NUMBERS = st.integers() | st.floats() | st.sampled_from([0, 1, 10**30, -1])
ANY: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5,
)
ACTIONS = st.sampled_from(
    ["reset", "interact", "terminate", "release_one", "release_all", "renew", "dance"]
)
REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "action": ACTIONS | ANY,
        "idx": st.integers(0, 300) | ANY,
        "if_persona": st.booleans() | ANY,
        "include_private_goal": ANY,
        "interaction_mode": st.sampled_from(["single_turn", "multi_turn"]) | ANY,
        "idempotency_key": TEXTS | ANY,
        "owner": ANY,
        "env_idx": st.integers(0, 80) | ANY,
        "lease_id": TEXTS | ANY,
        "sequence": st.integers(0, 3) | ANY,
        "response": TEXTS | ANY,
        "call": st.fixed_dictionaries({"name": ANY, "argument": ANY}) | ANY,
        "termination_reason": ANY,
        "x": ANY,
    },
)
BODIES = (
    st.binary(max_size=60)
    | REQUESTS.map(lambda value: json.dumps(value).encode())
    | st.builds(lambda depth: b'{"action": ' + b"[" * depth, st.integers(1, 3000))
    | st.builds(lambda n: b'{"action":"interact","env_idx":1%s}' % (b"0" * n), st.integers(0, 5000))
)


class Line:
    """A connection that expects an answer of the protocol to everything."""

    def __init__(self, address: str) -> None:
        self._connection = http.client.HTTPConnection(address.removeprefix("http://"))

    def say(self, body: bytes) -> dict[str, Any]:
        self._connection.request("POST", "/api/shop_agent", body)
        answer = self._connection.getresponse()
        result: dict[str, Any] = json.loads(answer.read())["result"]
        assert 200 <= answer.status < 500
        assert ("error" in result) == (answer.status != 200)
        return result

    def say_json(self, **request: Any) -> dict[str, Any]:
        return self.say(json.dumps(request).encode())

    def release(self, reply: dict[str, Any]) -> dict[str, Any]:
        return self.say_json(
            action="release_one", env_idx=reply["env_idx"], lease_id=reply["lease_id"]
        )


@settings(max_examples=300, deadline=None)
@given(BODIES)
def test_no_request_gives_a_5xx(addresses: dict[str, str], body: bytes) -> None:
    line = Line(addresses["standard"])
    result = line.say(body)
    if "lease_id" in result:
        assert "error" not in line.release(result)


@settings(max_examples=100, deadline=None)
@given(st.lists(REQUESTS, max_size=8))
def test_no_request_about_a_leased_slot_gives_a_5xx(
    addresses: dict[str, str], requests: list[dict[str, Any]]
) -> None:
    line = Line(addresses["compat"])
    opened = line.say_json(action="reset", idx=WORLDS["compat"].split("all")[0])
    lease = {name: opened[name] for name in ("env_idx", "lease_id")}
    for number, request in enumerate(requests):
        action = ("interact", "terminate", "renew")[number % 3]
        line.say_json(**{**request, "action": action, **lease})
    assert "error" not in line.release(opened)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(WORLDS)), st.integers(0, 10_000), STEPS)
def test_any_actions_over_http_give_what_they_give_in_process(
    addresses: dict[str, str], name: str, draw: int, steps: list[tuple[str, Any]]
) -> None:
    task_ids = WORLDS[name].split("all")
    local = ShopSession(WORLDS[name], task_ids[draw % len(task_ids)])
    with ShopClient(addresses[name]) as client:
        remote = RemoteSession(client, local.task.task_id)
        page = local.reset()
        assert remote.reset() == page
        for kind, value in steps:
            action = chosen(page, kind, value)
            done = local.step(action)
            assert remote.step(action) == done
            page = done.observation
            if done.done:
                break


def chosen(page: Observation, kind: str, value: Any) -> Action:
    """The action that a step of the fuzz test stands for."""
    if kind == "place":
        actions = page.state["actions"]
        return Action("click", actions[value % len(actions)] if actions else "-")
    read = read_action(value) if kind == "wire" else None
    if isinstance(read, Action):
        return read
    return Action("search" if kind == "search" else "click", str(value))


# --- many clients


def test_64_clients_at_once_give_the_episodes_of_one_by_one(addresses: dict[str, str]) -> None:
    assert at_once(addresses["standard"], SHOP) == one_by_one(SHOP)


def test_lost_replies_and_too_few_slots_change_no_episode() -> None:
    service = Service(SHOP, ServiceSettings(slots=16, reset_wait=20))
    running = Running(service)
    draws = random.Random(4)
    proxy = LossyProxy(f"http://127.0.0.1:{running.port}", lambda: draws.random() < 0.03)
    try:
        assert at_once(proxy.address, SHOP) == one_by_one(SHOP)
        assert proxy.lost > 20
        assert service.health()["free_slots"] == 16
        assert service.pool.expired == 0
    finally:
        proxy.stop()
        running.stop()


def test_the_slots_of_dead_clients_return() -> None:
    now = [100.0]
    settings = ServiceSettings(slots=CLIENTS, lease_ttl=10, reset_wait=0)
    service = Service(SHOP, settings, clock=lambda: now[0])
    running = Running(service)
    address = f"http://127.0.0.1:{running.port}"
    tasks = SHOP.split("all")
    clients = [ShopClient(address) for _ in range(CLIENTS)]
    try:
        for seed, client in enumerate(clients):
            client.reset(tasks[seed])
        assert service.health()["free_slots"] == 0
        alive, dead = clients[::2], clients[1::2]
        for client in dead:
            client._wire.close()  # killed: it neither releases nor says anything more
        for _ in range(2):
            now[0] += 6
            for client in alive:
                client.renew()
        heirs = [ShopClient(address) for _ in dead]
        for seed, heir in enumerate(heirs):
            heir.reset(tasks[seed])
        assert all(client.step("search[台灯]")["done"] is False for client in alive)
        assert service.pool.expired == len(dead)
        for client in (*alive, *heirs):
            client.close()
        assert service.health()["free_slots"] == CLIENTS
    finally:
        running.stop()
