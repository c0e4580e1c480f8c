"""A trace without what is private: of real episodes of the shop, and of whatever shape."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.trainer.fakes import FakePolicy, shopper
from tests.trainer.rollout.test_driver import requests
from trainer.rollout.driver import run_episodes
from trainer.rollout.private import public
from trainer.rollout.traces import score
from trainer.shop.world import World

TELLING = ("target_asin_match", "category_match", "title_score", "num_attr_matches",
           "num_option_matches", "price_upper", "price_verifiable", "price_resolution")  # fmt: skip


@pytest.fixture
def trace(mini: World) -> dict[str, Any]:
    [result] = run_episodes(mini, FakePolicy(shopper()), requests(mini, 1))
    return dict(result.trace)


def test_the_reward_parts_stay_and_what_tells_of_the_goal_goes(trace: dict[str, Any]) -> None:
    before = json.dumps(trace)
    assert set(TELLING) <= trace["final"]["reward_detail"].keys()
    shown = public(trace)
    assert "goal" not in shown["final"]
    detail = shown["final"]["reward_detail"]
    assert {key for key in detail if not key.startswith("r_")} == {
        "reward_version", "termination_reason",
    }  # fmt: skip
    assert score(shown["final"]) == score(trace["final"])
    assert shown["final"]["purchase"]["asin"] == trace["final"]["purchase"]["asin"]
    assert json.dumps(trace) == before


def test_an_answer_of_the_published_layout_is_cleaned_in_every_step(trace: dict[str, Any]) -> None:
    trace["steps"][-1]["environment"] |= trace["final"]
    trace["reset"] |= {"goal_options": ["x"], "private_task_instruction": "x", "reason_key": "x"}
    trace["reset"]["user_persona"] = {"__reasoning__": "x", "brand": "tarn"}
    trace["final"]["purchase"]["instruction_text"] = "x"
    shown = public(trace)
    text = json.dumps(shown)
    for name in (*TELLING, "goal_options", "private_task_instruction", "reason_key",
                 "__reasoning__", "instruction_text"):  # fmt: skip
        assert f'"{name}"' not in text
    assert '"goal"' not in text and shown["reset"]["user_persona"] == {"brand": "tarn"}


@pytest.mark.parametrize("odd", [None, 3, "x", [1, None, {}], {"environment": 7}])
def test_odd_shapes_stay_as_they_are(odd: Any) -> None:
    trace = {"steps": [odd], "final": odd, "reset": odd}
    assert public(trace) == trace
    assert public({"steps": odd}) == {"steps": odd}
