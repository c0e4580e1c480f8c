"""Why a group failed: every row of the table of training.md §4.7."""

from __future__ import annotations

from typing import Any

import pytest

from tests.trainer.grpo.outcomes import MadeUpOutcome, group
from tests.trainer.grpo.test_training_round import curriculum
from trainer.grpo.groups import Group
from trainer.grpo.triage import classify, needs_retry, triage_record
from trainer.skills.masks import Treatment

WRONG = group([0.0, 0.5, 0.0, 0.0], number=9)
FAILED = MadeUpOutcome("retry", 0.0)
WON = MadeUpOutcome("retry", 1.0, won=True)
BROKEN = MadeUpOutcome("retry", None)


@pytest.mark.parametrize(
    ("item", "enabled", "retry", "expected"),
    [
        (group([0.0, None]), True, None, "environment_or_runtime_error"),
        (group([1.0, None]), False, None, "environment_or_runtime_error"),
        (group([]), True, None, "environment_or_runtime_error"),
        (WRONG, True, BROKEN, "environment_or_runtime_error"),
        (WRONG, True, WON, "model_internalization_deficit"),
        (WRONG, True, FAILED, "full_skill_failure_pending_analysis"),
        (WRONG, False, None, "all_wrong_retry_disabled"),
        (group([0.0, 1.0]), True, None, "not_frontier"),
        (group([1.0, 1.0]), False, None, "not_frontier"),
    ],
)
def test_the_table(item: Group, enabled: bool, retry: Any, expected: str) -> None:
    assert classify(item, retry, retry_enabled=enabled) == expected


def test_only_scored_groups_that_failed_throughout_are_retried() -> None:
    assert needs_retry(WRONG, retry_enabled=True)
    assert not needs_retry(WRONG, retry_enabled=False)
    assert not needs_retry(group([0.0, None]), retry_enabled=True)
    assert not needs_retry(group([0.0, 1.0]), retry_enabled=True)


def test_a_group_that_was_not_retried_cannot_be_labelled() -> None:
    with pytest.raises(ValueError, match="was not retried"):
        classify(WRONG, None, retry_enabled=True)


def test_the_record_holds_siblings_in_sample_order_and_the_retry_apart() -> None:
    record = triage_record(
        WRONG, FAILED, "full_skill_failure_pending_analysis", curriculum(), traces_path="steps/x"
    )
    assert [row["sample_index"] for row in record["training_rollouts"]] == [36, 37, 38, 39]
    assert record["schema_version"] == "shopsimrl-training-failure-triage-v1"
    assert record["all_wrong"] is True
    assert record["assignment"]["group_key"] == "9"
    assert record["curriculum"]["state_id"] == curriculum().state_id
    assert record["full_skill_retry"] == {
        "trace_path": "steps/x",
        "episode_id": "retry",
        "reward": {"reward": 0.0, "r_strict": 0.0, "r_success": 0.0},
        "scored": True,
    }


def test_a_sample_reported_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="reported twice"):
        Group(0, 1, Treatment("skill_free", ()), (3, 3), (FAILED, WON))
    with pytest.raises(ValueError, match="2 indices for 1 episodes"):
        Group(0, 1, Treatment("skill_free", ()), (3, 4), (FAILED,))
