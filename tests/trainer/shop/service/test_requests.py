"""What the service does with each request (environment.md §5.3, §5.4)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.trainer.shop.factories import product, task, world
from trainer.shop.profiles import COMPAT, STANDARD
from trainer.shop.service.errors import LEGACY_STATUS, STATUS, ServiceError
from trainer.shop.service.requests import read_body
from trainer.shop.service.service import Service, ServiceSettings

TARGET = "932040992888"
PERSONA = {"用户ID": "u1"}


def service(profile: Any = COMPAT, **settings: Any) -> Service:
    tasks = (task(persona=PERSONA), task(task_id=1))
    shop = world([product()], *tasks, profile=profile)
    return Service(shop, ServiceSettings(**{"slots": 2, "reset_wait": 0.01, **settings}))


def ask(serving: Service, *, admin: bool = False, **request: Any) -> dict[str, Any]:
    body = json.dumps(request).encode()
    return asyncio.run(serving.handle(read_body(body), admin=admin))


def refusal(serving: Service, **request: Any) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        ask(serving, **request)
    return caught.value


def reset(serving: Service, idx: int = 0, **more: Any) -> dict[str, Any]:
    return ask(serving, action="reset", idx=idx, **more)


def slot(reply: dict[str, Any]) -> dict[str, Any]:
    return {"env_idx": reply["env_idx"], "lease_id": reply["lease_id"]}


def act(serving: Service, reply: dict[str, Any], text: str, **more: Any) -> dict[str, Any]:
    return ask(serving, action="interact", response=text, **slot(reply), **more)


def test_a_reset_reply_has_exactly_the_published_keys() -> None:
    reply = reset(service(), if_persona=True)
    assert list(reply) == [
        "task_instruction",
        "observation",
        "observation_state",
        "message",
        "env_idx",
        "idx",
        "task_mode",
        "interaction_mode",
        "environment_version",
        "user_persona",
        "lease_id",
    ]
    assert reply["environment_version"] == "shopsimulator-paper-aligned-v8"
    assert reply["observation_state"]["observation_version"] == "shopping-observation-v7"
    assert len(reply["lease_id"]) == 32
    assert (reply["idx"], reply["task_mode"]) == (0, "persona")


def test_the_short_text_is_for_persona_tasks_in_persona_mode() -> None:
    serving = service(slots=4)
    assert reset(serving, if_persona=True)["task_instruction"] == "想买一台洗衣机"
    assert "预算" in reset(serving)["task_instruction"]
    quirk = reset(serving, 1, if_persona=True)
    assert "预算" in quirk["task_instruction"]
    assert quirk["task_mode"] == "persona"


def test_the_persona_is_sent_unasked_in_compat_only() -> None:
    assert reset(service())["user_persona"] == PERSONA
    assert reset(service(STANDARD))["user_persona"] == {}
    assert reset(service(STANDARD), if_persona=True)["user_persona"] == PERSONA


def test_private_goals_need_the_admin() -> None:
    serving = service()
    assert refusal(serving, action="reset", idx=0, include_private_goal=True).code == "forbidden"
    reply = ask(serving, admin=True, action="reset", idx=0, include_private_goal=True)
    assert reply["goal_options"] == ["白色"]
    assert "预算" in reply["private_task_instruction"]


def test_an_interact_reply_has_exactly_the_published_keys() -> None:
    serving = service()
    reply = act(serving, reset(serving), "search[洗衣机]")
    assert list(reply) == [
        "done",
        "over",
        "reward",
        "observation",
        "observation_state",
        "message",
        "env_idx",
        "idx",
        "reward_detail",
        "purchase",
        "goal",
        "lease_id",
        "action_feedback",
    ]
    assert reply["idx"] == "slot-0-0"
    assert (reply["reward_detail"], reply["purchase"], reply["goal"]) == ({}, {}, {})


def test_an_episode_over_text_actions_ends_with_its_score() -> None:
    serving = service()
    opened = reset(serving)
    for text in (
        "search[洗衣机]",
        f"Action: click[{TARGET}]",
        "click[颜色分类=白色]",
        "click[尺码=大号]",
    ):
        assert act(serving, opened, text)["done"] is False
    reply = act(serving, opened, "click[buy now]")
    assert (reply["done"], reply["over"], reply["reward"]) == (True, True, 1.0)
    assert reply["termination_reason"] == "purchase"
    assert reply["goal"]["goal_options"] == ["白色"]


def test_structured_calls_are_taken_verbatim() -> None:
    serving = service()
    opened = reset(serving)
    call = {"name": "search", "argument": "洗衣机]\n["}
    reply = ask(serving, action="interact", call=call, **slot(opened))
    assert reply["observation_state"]["search_text"] == "洗衣机]\n["
    bad = {"action": "interact", **slot(opened)}
    assert refusal(serving, **bad, call={"name": "buy", "argument": "x"}).code == "bad_request"
    assert refusal(serving, **bad, call={"name": "click"}).code == "bad_request"


@pytest.mark.parametrize("text", ["", "nonsense", "click[a], click[b]", None, 5, {"a": 1}])
def test_unreadable_actions_are_pages_not_errors(text: Any) -> None:
    serving = service()
    opened = reset(serving)
    reply = ask(serving, action="interact", response=text, **slot(opened))
    assert reply["action_feedback"]["valid"] is False
    assert reply["observation_state"]["page_type"] == "search_home"


def test_a_terminate_reply_has_no_feedback_and_names_its_reason() -> None:
    serving = service()
    opened = reset(serving)
    reply = ask(serving, action="terminate", termination_reason="generation_length", **slot(opened))
    assert "action_feedback" not in reply
    assert (reply["done"], reply["reward"], reply["purchase"]) == (True, 0.0, {})
    assert reply["termination_reason"] == "generation_length"
    assert refusal(serving, action="terminate", **slot(opened)).code == "episode_over"
    assert (
        refusal(serving, action="interact", response="search[x]", **slot(opened)).code
        == "episode_over"
    )


def test_the_reason_must_be_one_that_callers_may_give() -> None:
    serving = service()
    opened = reset(serving)
    for reason in ("purchase", "context_limit", 3):
        error = refusal(serving, action="terminate", termination_reason=reason, **slot(opened))
        assert error.code == "bad_request"
    ours = service(STANDARD)
    opened = reset(ours)
    reply = ask(ours, action="terminate", termination_reason="context_limit", **slot(opened))
    assert reply["termination_reason"] == "context_limit"


def test_a_finished_episode_keeps_its_slot_until_it_is_released() -> None:
    serving = service(slots=1)
    opened = reset(serving)
    ask(serving, action="terminate", **slot(opened))
    assert refusal(serving, action="reset", idx=0).code == "no_free_slot"
    ask(serving, action="release_one", **slot(opened))
    assert reset(serving, 1)["env_idx"] == 0
    assert refusal(serving, action="release_one", **slot(opened)).code == "stale_lease"


def test_modes_have_their_own_limits() -> None:
    serving = service(slots=2)
    for mode, limit in (("single_turn", 30), ("multi_turn", 40)):
        opened = reset(serving, interaction_mode=mode)
        replies = [act(serving, opened, "x") for _ in range(limit)]
        assert [reply["done"] for reply in replies] == [False] * (limit - 1) + [True]
        assert replies[-1]["termination_reason"] == "action_limit"


def test_a_full_pool_answers_429_with_a_hint() -> None:
    serving = service(slots=1)
    reset(serving)
    error = refusal(serving, action="reset", idx=0)
    assert error.code == "no_free_slot"
    assert error.retry_after is not None
    full = service(slots=1, max_waiting=0)
    reset(full)
    assert "queue" in refusal(full, action="reset", idx=0).message


def test_release_all_needs_the_admin_and_voids_every_lease() -> None:
    serving = service()
    opened = reset(serving)
    assert refusal(serving, action="release_all").code == "forbidden"
    ask(serving, admin=True, action="release_all")
    assert refusal(serving, action="interact", response="x", **slot(opened)).code == "stale_lease"
    assert serving.health()["free_slots"] == 2


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"action": "dance"}, "unknown_action"),
        ({}, "unknown_action"),
        ({"action": "reset", "idx": 99}, "unknown_task"),
        ({"action": "reset", "idx": "0"}, "bad_request"),
        ({"action": "reset", "idx": True}, "bad_request"),
        ({"action": "reset"}, "bad_request"),
        ({"action": "reset", "idx": 0, "env_idx": 1}, "bad_request"),
        ({"action": "reset", "idx": 0, "if_persona": "yes"}, "bad_request"),
        ({"action": "reset", "idx": 0, "interaction_mode": "duel"}, "bad_request"),
        ({"action": "reset", "idx": 0, "idempotency_key": 5}, "bad_request"),
        ({"action": "reset", "idx": 0, "owner": "x" * 201}, "bad_request"),
        ({"action": "interact"}, "bad_request"),
        ({"action": "interact", "env_idx": "0", "lease_id": "x"}, "bad_request"),
        ({"action": "interact", "env_idx": 0, "lease_id": ""}, "bad_request"),
        ({"action": "interact", "env_idx": 0, "lease_id": "x"}, "stale_lease"),
        ({"action": "interact", "env_idx": 99, "lease_id": "x"}, "stale_lease"),
        ({"action": "terminate", "env_idx": 0, "lease_id": "x", "sequence": 0}, "bad_request"),
        ({"action": "release_one"}, "bad_request"),
    ],
)
def test_bad_requests_have_a_code(request_: dict[str, Any], code: str) -> None:
    assert refusal(service(), **request_).code == code


def test_every_code_has_a_status_in_both_tables() -> None:
    assert STATUS.keys() == LEGACY_STATUS.keys()
    assert {LEGACY_STATUS[c] for c in ("unknown_task", "episode_over")} == {500}
    assert LEGACY_STATUS["bad_json"] == 200
    assert all(400 <= status < 500 for status in STATUS.values())


# --- lost replies


def test_a_reset_asked_again_with_its_key_gets_the_same_lease() -> None:
    serving = service()
    first = reset(serving, idempotency_key="k")
    assert reset(serving, idempotency_key="k") == first
    assert serving.health()["free_slots"] == 1
    assert reset(serving, idempotency_key="other")["env_idx"] != first["env_idx"]


def test_a_key_in_use_is_not_given_another_episode() -> None:
    serving = service()
    opened = reset(serving, idempotency_key="k")
    error = refusal(serving, action="reset", idx=1, idempotency_key="k")
    assert error.code == "key_in_use"
    act(serving, opened, "search[x]")
    assert refusal(serving, action="reset", idx=0, idempotency_key="k").code == "key_in_use"
    ask(serving, action="release_one", **slot(opened))
    assert reset(serving, 1, idempotency_key="k")["idx"] == 1


def test_a_reset_refused_after_its_wait_gives_its_slot_back() -> None:
    async def run() -> None:
        serving = service(slots=2, reset_wait=5)
        held = [await serving.handle({"action": "reset", "idx": 0}) for _ in range(2)]
        request = {"action": "reset", "idx": 0, "idempotency_key": "k"}
        twice = [asyncio.create_task(serving.handle(request)) for _ in range(2)]
        await asyncio.sleep(0)
        await serving.handle({"action": "release_one", **slot(held[0])})
        opened = await twice[0]
        await serving.handle({"action": "interact", "response": "search[x]", **slot(opened)})
        await serving.handle({"action": "release_one", **slot(held[1])})
        with pytest.raises(ServiceError) as caught:
            await twice[1]
        assert caught.value.code == "key_in_use"
        assert serving.health()["free_slots"] == 1

    asyncio.run(run())


def test_a_numbered_step_asked_again_is_answered_and_not_carried_out_twice() -> None:
    serving = service()
    opened = reset(serving)
    first = act(serving, opened, "search[洗衣机]", sequence=1)
    assert act(serving, opened, "search[洗衣机]", sequence=1) == first
    second = act(serving, opened, f"click[{TARGET}]", sequence=2)
    assert second["observation_state"]["page_type"] == "product_detail"
    again = {"action": "interact", "response": "x", **slot(opened)}
    assert refusal(serving, **again, sequence=1).code == "sequence_conflict"
    assert refusal(serving, **again, sequence=4).code == "sequence_conflict"


def test_a_lost_last_reply_is_answered_again() -> None:
    serving = service()
    opened = reset(serving)
    end = {"action": "terminate", "sequence": 1, **slot(opened)}
    assert ask(serving, **end) == ask(serving, **end)


def test_renew_keeps_a_lease_alive() -> None:
    serving = service()
    opened = reset(serving)
    assert ask(serving, action="renew", **slot(opened))["lease_ttl_seconds"] == 600


# --- equality


def test_64_episodes_at_once_give_the_same_replies_as_one_by_one() -> None:
    texts = ["search[洗衣机]", f"click[{TARGET}]", "click[颜色分类=白色]", "x", "click[尺码=大号]"]

    def strip(reply: dict[str, Any]) -> dict[str, Any]:
        return {k: v for k, v in reply.items() if k not in ("env_idx", "lease_id", "idx")}

    async def play(serving: Service, number: int) -> list[dict[str, Any]]:
        request = {"action": "reset", "idx": number % 2, "if_persona": True}
        opened = await serving.handle(request)
        replies = [strip(opened)]
        for text in [*texts[: 1 + number % 5], "click[buy now]"]:
            await asyncio.sleep(0)
            step = {"action": "interact", "response": text, **slot(opened)}
            replies.append(strip(await serving.handle(step)))
            if replies[-1]["done"]:
                break
        await serving.handle({"action": "release_one", **slot(opened)})
        return replies

    async def at_once(serving: Service) -> list[Any]:
        replies: list[Any] = await asyncio.gather(*(play(serving, n) for n in range(64)))
        return replies

    async def one_by_one(serving: Service) -> list[Any]:
        return [await play(serving, number) for number in range(64)]

    assert asyncio.run(at_once(service(slots=64))) == asyncio.run(one_by_one(service(slots=1)))
    waiting = asyncio.run(at_once(service(slots=3, reset_wait=5)))
    assert waiting == asyncio.run(one_by_one(service()))
