"""Behaviour metrics on made-up traces: what is counted, what is not, and what stays unknown."""

from __future__ import annotations

import copy
import hashlib
from typing import Any

import numpy as np
import pytest

from tests.web.traces import DETAIL, RESULTS, make_trace
from trainer.analysis.behaviour import behaviour
from trainer.analysis.cases import cases
from trainer.analysis.cohorts import Population, describe, pair


def trace(task: int = 1, sample: int = 0, *, success: bool = True) -> dict[str, Any]:
    made = make_trace(f"task-{task}", task, sample, [], success=success)
    made["reset"]["observation_state"] = {"page_type": "search_home"}
    return made


def step(
    action: str | None, after: dict[str, Any], *, valid: bool = True, tokens: int | None = 4
) -> dict[str, Any]:
    usage = {} if tokens is None else {"completion_tokens": tokens}
    return {
        "model": {"content": "", "reasoning": "hm", "usage": usage},
        "action": action,
        "environment": {
            "observation_state": after,
            "action_feedback": {"valid": valid, "reason": "executed"},
        },
    }


def test_a_straight_purchase_is_counted_step_by_step() -> None:
    found = behaviour(trace())
    assert found.labels == ["search", "open_product", "select_option", "purchase"]
    assert (found.outcome, found.reward, found.termination) == ("success", 1.0, "purchase")
    expected = {
        "model_steps": 4, "actions": 4, "valid_actions": 4, "invalid_actions": 0, "searches": 1,
        "unique_queries": 1, "query_chars": 19, "product_opens": 1, "unique_products": 1,
        "product_revisits": 0, "first_product_rank": 6, "option_selections": 1,
        "option_changes": 0, "generated_tokens": 16, "tokens_per_turn": 4.0,
        "first_turn_tokens": 4, "exposed_products": 1,
    }  # fmt: skip
    assert {key: found.values[key] for key in expected} == expected
    assert found.phases == {
        "search_home": (1, 4), "search_results": (1, 4), "product_detail": (2, 8),
        "other": (0, 0), "protocol_repair": (0, 0),
    }  # fmt: skip


def test_an_option_is_no_visit_and_choosing_again_is_a_change() -> None:
    made = trace()
    chosen = {**DETAIL, "selected_options": {"size": "s"}}
    changed = {**DETAIL, "selected_options": {"size": "m"}}
    made["steps"][2:3] = [step("click[size=s]", chosen), step("click[size=m]", changed)]
    found = behaviour(made)
    assert (found.values["product_opens"], found.values["product_revisits"]) == (1, 0)
    assert (found.values["option_selections"], found.values["option_changes"]) == (2, 1)


def test_opening_a_product_again_is_a_revisit_and_going_back_a_step_back() -> None:
    made = trace()
    made["steps"][2:2] = [
        step("click[< prev]", dict(RESULTS)),
        step("click[100000000001]", dict(DETAIL)),
    ]
    found = behaviour(made)
    assert (found.values["product_opens"], found.values["product_revisits"]) == (2, 1)
    assert (found.values["backtracks"], found.values["pagination"]) == (1, 0)


def test_turning_pages_of_a_result_list_is_pagination() -> None:
    made = trace()
    made["steps"].insert(1, step("click[next >]", dict(RESULTS)))
    found = behaviour(made)
    assert (found.values["backtracks"], found.values["pagination"]) == (0, 1)


def test_a_protocol_repair_is_a_turn_but_no_action() -> None:
    made = trace()
    broken = step(None, {}, tokens=7) | {"environment": None, "protocol_error": {"code": "no_call"}}
    made["steps"].insert(1, broken)
    found = behaviour(made)
    assert (found.values["model_steps"], found.values["actions"]) == (5, 4)
    assert found.values["protocol_errors"] == 1
    assert found.phases["protocol_repair"] == (1, 7)
    assert found.labels[1] == "repair"


def test_an_invalid_action_is_counted_as_such_only() -> None:
    made = trace()
    made["steps"].insert(1, step("click[nowhere]", dict(RESULTS), valid=False))
    found = behaviour(made)
    assert (found.values["actions"], found.values["invalid_actions"]) == (5, 1)
    assert found.labels[1] == "invalid_action"


def test_queries_that_differ_in_blanks_and_case_are_one() -> None:
    made = trace()
    made["steps"][0:0] = [step("search[Tarn  VINTAGE bottle]", {"page_type": "search_home"})]
    found = behaviour(made)
    assert (found.values["searches"], found.values["unique_queries"]) == (2, 1)


def test_a_missing_count_blanks_the_mean_instead_of_shrinking_its_denominator() -> None:
    made = trace()
    made["steps"][1]["model"]["usage"] = {}
    found = behaviour(made)
    assert found.values["tokens_per_turn"] is None
    assert found.values["generated_tokens"] == 12
    whole = describe(Population("x", "val", 0, [found], "t", "f"))[0]
    assert (whole.token_complete, whole.pooled_tokens_per_turn) == (0, None)
    assert "tokens_per_turn" not in whole.metrics


def test_a_technical_failure_is_neither_a_failure_nor_a_zero() -> None:
    made = trace(success=False)
    made["final"] = None
    made["error"] = {"type": "EngineError"}
    found = behaviour(made)
    assert (found.outcome, found.reward) == ("technical", None)
    rows = [found, behaviour(trace(2)), behaviour(trace(3, success=False))]
    by_outcome = {c.outcome: c for c in describe(Population("x", "val", 0, rows, "t", "f"))}
    assert {k: c.n for k, c in by_outcome.items()} == {
        "all": 2, "success": 1, "failure": 1, "technical": 1,
    }  # fmt: skip
    assert by_outcome["all"].success_rate == 0.5
    assert by_outcome["technical"].reward_mean is None


def longer(made: dict[str, Any], turns: int) -> dict[str, Any]:
    """The trace with further pages turned."""
    made = copy.deepcopy(made)
    made["steps"][1:1] = [step("click[next >]", dict(RESULTS)) for _ in range(turns)]
    return made


def population(name: str, traces: list[dict[str, Any]]) -> Population:
    return Population(name, "val", 0, [behaviour(t) for t in traces], "t", f"{name}.jsonl")


def test_siblings_are_averaged_before_tasks_are_paired() -> None:
    a = population("a", [longer(trace(1), 2), longer(trace(1, 1), 4), longer(trace(2), 1)])
    b = population("b", [trace(1), trace(2), trace(3)])
    found = pair(a, b)
    assert found is not None
    turned = next(d for d in found.metrics if d.metric == "pagination")
    assert (found.n, turned.n) == (2, 2)
    assert (turned.a, turned.b, turned.difference) == (2.0, 0.0, -2.0)


def test_the_paired_interval_is_the_published_one() -> None:
    a = population("a", [longer(trace(i), i) for i in range(1, 9)])
    b = population("b", [trace(i) for i in range(1, 9)])
    found = pair(a, b)
    assert found is not None
    turned = next(d for d in found.metrics if d.metric == "pagination")
    gaps = -np.arange(1.0, 9.0)
    seed = int.from_bytes(hashlib.sha256(b"20260909:pagination").digest()[:4], "big")
    draws = np.random.default_rng(seed).integers(0, 8, (5000, 8))
    expected = np.percentile(gaps[draws].mean(axis=1), [2.5, 97.5])
    assert turned.interval == pytest.approx(tuple(expected), abs=1e-12)


def test_the_subset_of_both_successes_leaves_out_the_other_tasks() -> None:
    a = population("a", [trace(1), trace(2, success=False), trace(3)])
    b = population("b", [trace(1), trace(2), trace(3)])
    found = pair(a, b, both_successful=True)
    assert found is not None
    assert (found.subset, found.n) == ("both_success", 2)
    assert pair(a, population("c", [trace(9)])) is None


def test_cases_follow_their_rules_and_ties_go_to_the_smaller_task() -> None:
    a = population("a", [
        longer(trace(1), 3), longer(trace(2), 3), longer(trace(3, success=False), 5),
        trace(4, success=False), trace(5),
    ])  # fmt: skip
    b = population(
        "b", [trace(1), trace(2), trace(3), trace(4), longer(trace(5, success=False), 6)]
    )
    found = {case.rule: case for case in cases(a, b)}
    assert {rule: case.task_id for rule, case in found.items()} == {
        "largest_step_reduction_both_success": 1,
        "failure_to_success_largest_token_reduction": 3,
        "success_to_failure_longest_final": 5,
    }
    case = found["largest_step_reduction_both_success"]
    assert (case.a.turns, case.b.turns) == (7, 4)
    assert case.a.actions[1:4] == ["paginate"] * 3
