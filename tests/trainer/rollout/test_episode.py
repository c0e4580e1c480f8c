"""The episode's rules: what costs a turn, what ends it, what is scored."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from tests.trainer.fakes import FakePolicy, call, script, words
from tests.trainer.rollout.standard_world import OTHER, WANTED, standard_world
from trainer.rollout.driver import run_episodes
from trainer.rollout.policy import ModelTurn, ToolCall
from trainer.rollout.types import EpisodeJob, EpisodeRequest, EpisodeResult
from trainer.shop.session import ShopSession
from trainer.shop.types import StepResult
from trainer.shop.world import World

PURCHASE = [
    call("search", {"query": "迷你冰箱"}),
    call("click", {"value": WANTED}),
    call("click", {"value": "颜色=白色"}),
    call("click", {"value": "buy now"}),
]


def play(
    turns: list[ModelTurn], *, world: World | None = None, max_turns: int = 30
) -> tuple[EpisodeResult, FakePolicy]:
    world = world or standard_world()
    policy = FakePolicy(lambda conversation, turn: turns[min(turn, len(turns) - 1)])
    request = EpisodeRequest(EpisodeJob.of(7, world.split("val")[0], 0, "val"), "e", "key")
    return run_episodes(world, policy, [request], max_turns=max_turns)[0], policy


def steps(result: EpisodeResult) -> list[dict[str, Any]]:
    return list(result.trace["steps"])


def codes(result: EpisodeResult) -> list[str | None]:
    return [step.get("protocol_error", {}).get("code") for step in steps(result)]


def test_a_purchase_that_meets_every_wish_is_a_success() -> None:
    result, _ = play(PURCHASE)
    assert result.success and result.scored and result.completed
    assert result.reward["reward"] == result.reward["r_strict"] == 1.0
    assert [step["action"] for step in steps(result)] == [
        "search[迷你冰箱]",
        f"click[{WANTED}]",
        "click[颜色=白色]",
        "click[buy now]",
    ]
    assert result.trace["final"]["termination_reason"] == "purchase"
    assert result.trace["error"] is None


def test_another_product_with_the_same_traits_succeeds_too() -> None:
    other = [PURCHASE[0], call("click", {"value": OTHER}), *PURCHASE[2:]]
    result, _ = play(other)
    assert result.success
    assert result.trace["final"]["reward_detail"]["target_asin_match"] is False


@pytest.mark.parametrize(
    ("turn", "code"),
    [
        (ModelTurn("", "stop"), "tool_call_count"),
        (ModelTurn("我来搜索", "stop"), "tool_call_count"),
        (
            ModelTurn("", "stop", tool_calls=(ToolCall("search", {"query": "a"}),) * 2),
            "tool_call_count",
        ),
        (call("search", {"query": "a"}, text="好的"), "mixed_content"),
        (ModelTurn("", "stop", decode_error="arguments are no JSON"), "invalid_tool_call"),
        (call("buy", {"query": "a"}), "unavailable_tool"),
        (call("click", {"value": "a"}), "unavailable_tool"),
        (call("search", {"value": "a"}), "invalid_tool_arguments"),
        (call("search", {"query": "  "}), "invalid_tool_arguments"),
        (call("search", {"query": "a", "page": 1}), "invalid_tool_arguments"),
    ],
)
def test_protocol_errors_are_named_in_the_specified_order(turn: ModelTurn, code: str) -> None:
    result, _ = play([turn, *PURCHASE])
    assert codes(result) == [code, None, None, None, None]
    first = steps(result)[0]
    assert first["action"] is None and first["environment"] is None
    assert result.success, "the page stayed what it was and the episode went on"


def test_a_protocol_error_costs_a_turn_but_no_action() -> None:
    result, policy = play([call("buy", {"value": "x"})], max_turns=3)
    assert codes(result) == ["unavailable_tool"] * 3
    assert result.trace["final"]["termination_reason"] == "action_limit"
    assert result.scored and not result.success and result.reward["reward"] == 0.0
    assert len(policy.batches[0].turns[0]) == 3


def test_feedback_answers_every_call_or_comes_from_the_user() -> None:
    two = ModelTurn(
        "",
        "stop",
        tool_calls=(
            ToolCall("search", {"query": "a"}, "one"),
            ToolCall("search", {"query": "b"}, "two"),
        ),
    )
    _, policy = play([two, ModelTurn("hm", "stop"), *PURCHASE])
    received = policy.batches[0].received[0]
    assert [(m.role, m.tool_call_id) for m in received[:3]] == [
        ("tool", "one"),
        ("tool", "two"),
        ("user", None),
    ]
    assert received[2].content == (
        '{"type":"tool_protocol_error","code":"tool_call_count",'
        '"message":"每一轮必须恰好调用一个函数。",'
        '"instruction":"没有执行任何操作。请重新回答：只调用一个当前提供的函数，不要输出其他文字。",'
        '"available_tools":["search"]}'
    )


def test_a_value_outside_the_enum_reaches_the_shop_and_is_no_protocol_error() -> None:
    result, _ = play([PURCHASE[0], call("click", {"value": " next > "}), *PURCHASE[1:]])
    step = steps(result)[1]
    assert step["action"] == "click[next >]"
    assert step["environment"]["action_feedback"]["valid"] is False
    assert "protocol_error" not in step
    assert result.success


def test_generation_length_without_a_call_ends_the_episode_with_a_zero_score() -> None:
    result, _ = play([PURCHASE[0], ModelTurn("", "length", reasoning="…")])
    assert len(steps(result)) == 2
    assert steps(result)[1]["policy_failure"] == {"code": "generation_length"}
    assert steps(result)[1]["model"]["reasoning"] == "…"
    assert result.completed and result.scored and result.reward["reward"] == 0.0
    assert result.trace["final"]["termination_reason"] == "generation_length"


def test_generation_length_with_a_complete_call_goes_on() -> None:
    cut = ModelTurn("", "length", tool_calls=PURCHASE[0].tool_calls)
    result, _ = play([cut, *PURCHASE[1:]])
    assert result.success


def test_the_action_limit_ends_a_wandering_episode() -> None:
    wander = [PURCHASE[0], call("click", {"value": "back to search"})]
    result, _ = play([*wander, *wander, *wander], max_turns=5)
    assert len(steps(result)) == 5
    assert result.trace["final"]["termination_reason"] == "action_limit"
    assert result.trace["final"]["done"] is True


@pytest.mark.parametrize(
    ("turn", "category"),
    [
        (ModelTurn("buy", "abort"), "aborted"),
        (ModelTurn("", "abort", decode_error="HTTP 500"), "engine"),
        (ModelTurn("buy", "stop", token_ids=(1, 2), log_probs=(-0.5,)), "engine"),
        (ModelTurn("buy", "stop", token_ids=(1,), log_probs=(math.nan,)), "engine"),
        (ModelTurn("buy", "stop", token_ids=(1,), log_probs=(-math.inf,)), "engine"),
    ],
)
def test_numbers_that_cannot_be_true_make_an_episode_unscored(
    turn: ModelTurn, category: str
) -> None:
    result, _ = play([PURCHASE[0], turn])
    assert not result.completed and not result.scored and result.reward == {}
    assert result.trace["status"] == "failed" and result.trace["final"] is None
    assert result.trace["error"]["stage"] == "model_step_2"
    assert result.trace["error"]["category"] == category
    assert len(steps(result)) == 2, "the turn is recorded nevertheless"


def test_a_fault_of_the_shop_is_technical_and_not_a_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: ShopSession, action: object) -> None:
        raise OSError("index lost")

    monkeypatch.setattr(ShopSession, "step", broken)
    result, _ = play(PURCHASE)
    assert not result.scored
    assert result.trace["error"]["stage"] == "environment_step_1"
    assert result.trace["error"]["type"] == "OSError"
    assert result.trace["error"]["category"] == "environment"


def test_a_reward_that_is_not_its_strict_part_is_a_contract_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    true_end = ShopSession._purchase

    def wrong(self: ShopSession, record: dict[str, Any]) -> StepResult:
        return replace(true_end(self, record), reward=0.25)

    monkeypatch.setattr(ShopSession, "_purchase", wrong)
    result, _ = play(PURCHASE)
    assert result.completed and not result.scored and result.reward == {}
    assert result.trace["error"]["category"] == "contract"
    assert "0.25 is not r_strict 1.0" in result.trace["error"]["message"]


def test_words_without_their_end_are_no_action(mini: World) -> None:
    task = mini.split("train")[0]
    policy = FakePolicy(lambda conversation, turn: words("search boots", finish="length"))
    request = EpisodeRequest(EpisodeJob.of(7, task, 0, "train"), "e", "key")
    result = run_episodes(mini, policy, [request])[0]
    assert result.trace["final"]["termination_reason"] == "generation_length"
    assert len(result.trace["steps"]) == 1


def test_a_word_turn_that_means_nothing_is_answered_and_costs_a_turn(mini: World) -> None:
    task = mini.split("train")[0]
    policy = FakePolicy(script("calm seller", "search boots", "open #9", "next"))
    request = EpisodeRequest(EpisodeJob.of(7, task, 0, "train"), "e", "key")
    result = run_episodes(mini, policy, [request], max_turns=4)[0]
    assert codes(result)[:3] == ["invalid_tool_call", None, "invalid_tool_arguments"]
    assert result.trace["steps"][0]["protocol_feedback"] == "error"
