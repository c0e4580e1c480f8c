"""Traces: slim on disk, whole when expanded, private until the end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.trainer.fakes import FakePolicy, call, shopper
from tests.trainer.rollout.standard_world import WANTED, standard_world
from trainer.canonical import episode_seed
from trainer.rollout.driver import run_episodes
from trainer.rollout.expand import conversation_of, expand
from trainer.rollout.policy import ModelTurn, TokenRecord
from trainer.rollout.traces import is_complete, score, token_record, token_summary, without_times
from trainer.rollout.types import EpisodeJob, EpisodeRequest
from trainer.shop.world import World
from trainer.skills.types import Chunk

TURNS = [
    call("search", {"query": "迷你冰箱"}),
    ModelTurn("嗯", "stop"),
    call("click", {"value": WANTED}),
    call("buy", {}),
    call("click", {"value": "颜色=白色"}),
    call("click", {"value": "buy now"}),
]


def standard_trace() -> tuple[dict[str, Any], FakePolicy]:
    policy = FakePolicy(lambda conversation, turn: TURNS[turn])
    request = EpisodeRequest(
        EpisodeJob.of(20260830, 1, 0, "val"), "task-000001__sample-000", "k", (Chunk("a", "甲"),)
    )
    return dict(run_episodes(standard_world(), policy, [request])[0].trace), policy


def test_the_conversation_is_rebuilt_byte_for_byte() -> None:
    trace, policy = standard_trace()
    batch = policy.batches[0]
    sent = [*batch.conversations[0].messages, *batch.received[0]]
    rebuilt = [m for m in conversation_of(trace) if m["role"] != "assistant"]
    assert [(m["role"], m["content"], m.get("tool_call_id")) for m in rebuilt] == [
        (m.role, m.content, m.tool_call_id) for m in sent
    ]
    assistant = [m for m in conversation_of(trace) if m["role"] == "assistant"]
    assert [m["content"] for m in assistant] == ["", "嗯", "", "", "", ""]
    assert assistant[0]["tool_calls"][0]["function"] == {
        "name": "search",
        "arguments": '{"query": "迷你冰箱"}',
    }


def test_tools_and_pages_are_restored_for_every_step() -> None:
    trace, policy = standard_trace()
    full = expand(trace)
    assert [step["tools"] for step in full["steps"]] == policy.batches[0].offered[0]
    pages = [step["environment"]["observation"] for step in full["steps"] if step["environment"]]
    received = policy.batches[0].received[0]
    assert pages[:-1] == [received[0].content, received[2].content, received[4].content]
    assert pages[-1] == trace["final"]["observation"]
    assert full["reset"]["observation"] in full["steps"][0]["observation"]
    assert "layout" not in full
    assert expand(full) == full


def test_a_page_is_stored_once() -> None:
    trace, policy = standard_trace()
    text = json.dumps(trace, ensure_ascii=False)
    for message in policy.batches[0].received[0]:
        page = json.dumps(message.content, ensure_ascii=False)[1:-1]
        allowed = 2 if message.content.startswith("{") else 1  # feedback: said and acted on
        assert text.count(page) == allowed


def test_the_private_goal_appears_at_the_end_only() -> None:
    trace, _ = standard_trace()
    secret = "买一台白色的静音迷你冰箱，预算250元"
    assert trace["final"]["goal"]["instruction_text"] == secret
    before = {key: value for key, value in trace.items() if key != "final"}
    assert secret not in json.dumps(before, ensure_ascii=False)


def test_an_evaluation_trace_has_the_keys_of_the_published_schema() -> None:
    trace, _ = standard_trace()
    assert trace["schema_version"] == "shopsimrl-episode-v4"
    seed = episode_seed(20260830, 1, 0)
    assert trace["job"] == {"task_id": 1, "sample_id": 0, "seed": seed, "split": "val"}
    assert {
        "episode_id", "status", "provenance", "started_at", "ended_at", "duration_ms", "reset",
        "selected_skills", "conversation", "steps", "final", "error",
    } <= trace.keys()  # fmt: skip
    assert trace["provenance"].keys() == {"model", "environment", "prompt", "runtime", "skills"}
    assert is_complete(trace)
    json.dumps(trace, allow_nan=False)


def test_a_word_trace_expands_too(mini: World) -> None:
    policy = FakePolicy(shopper(1.0))
    job = EpisodeJob.of(1, mini.split("val")[0], 0, "val")
    request = EpisodeRequest(job, job.episode_id, job.noise_key)
    trace = run_episodes(mini, policy, [request])[0].trace
    sent = [*policy.batches[0].conversations[0].messages, *policy.batches[0].received[0]]
    rebuilt = [m for m in conversation_of(trace) if m["role"] != "assistant"]
    assert [m["content"] for m in rebuilt] == [m.content for m in sent]
    assert all(step["tools"] == [] for step in expand(trace)["steps"])


@pytest.mark.parametrize(
    ("change", "scored"),
    [
        ({}, True),
        ({"done": False}, False),
        ({"reward": True}, False),
        ({"reward": "1"}, False),
        ({"reward_detail": None}, False),
        ({"reward_detail": {"r_strict": 1.0}}, False),
        ({"reward_detail": {"r_success": 1}}, False),
        ({"reward_detail": {"r_strict": float("nan"), "r_success": 1}}, False),
        ({"reward_detail": {"r_strict": 0.5, "r_success": 0.5}}, False),
        ({"reward_detail": {"r_strict": 0.5, "r_success": 0, "r_x": float("inf")}}, False),
    ],
)
def test_only_a_whole_final_payload_is_scored(change: dict[str, Any], scored: bool) -> None:
    final = {"done": True, "reward": 1.0, "reward_detail": {"r_strict": 1.0, "r_success": 1}}
    assert (score({**final, **change}) is not None) is scored


def test_a_score_holds_every_numeric_part_and_nothing_else() -> None:
    detail = {"r_strict": 1, "r_success": 1, "r_att": 0.5, "title_score": 1.0, "r_note": "x"}
    final = {"done": True, "reward": 1, "reward_detail": detail}
    assert score(final) == {"reward": 1.0, "r_strict": 1.0, "r_success": 1.0, "r_att": 0.5}
    assert score(None) is None


def test_token_spans_restore_mask_and_log_probs() -> None:
    record = TokenRecord(
        (5, 6, 7, 8, 9, 10), (0, 1, 1, 0, 1, 0), (0.0, -0.5, -1.5, 0.0, -0.25, 0.0)
    )
    summary = token_summary(record, exact=True)
    assert summary["sampled_spans"] == [[1, 3], [4, 5]]
    assert summary["log_probs"] == [-0.5, -1.5, -0.25]
    assert (summary["total"], summary["sampled"]) == (6, 3)
    assert (summary["log_prob_mean"], summary["log_prob_min"]) == (-0.75, -1.5)
    assert token_record({"tokens": summary}) == record


def test_times_are_left_out_at_every_depth() -> None:
    value = {"created_at": 1, "a": [{"latency_ms": 2, "b": 3}], "seconds": {"x": 1}}
    assert without_times(value) == {"a": [{"b": 3}]}
