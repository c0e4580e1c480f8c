"""``rollout/shopsim/*``: numerators, denominators, and what is absent rather than zero."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.trainer.grpo.outcomes import MadeUpOutcome, group
from tests.trainer.grpo.test_training_round import curriculum
from trainer.grpo.filter import UNSCORED, ZERO_STD, Decision
from trainer.grpo.groups import Group, sample_indices
from trainer.grpo.metrics import FinishedGroup, step_metrics
from trainer.skills.masks import Treatment

FREE = Treatment("skill_free", ())
EMPTY = Treatment("assisted_empty", ())
BOTH = Treatment("assisted", ("brand", "calm"))
ONE = Treatment("assisted", ("brand",))

GROUPS = [
    FinishedGroup(
        group([1.0, 0.0], number=0, treatment=FREE), None, "not_frontier", Decision("kept")
    ),
    FinishedGroup(
        group([0.0, 0.0], number=1, treatment=EMPTY),
        MadeUpOutcome("r1", 0.0),
        "full_skill_failure_pending_analysis",
        Decision("dropped", ZERO_STD),
    ),
    FinishedGroup(
        group([0.5, 0.0], number=2, treatment=BOTH),
        MadeUpOutcome("r2", 1.0, won=True),
        "model_internalization_deficit",
        Decision("kept"),
    ),
    FinishedGroup(
        group([1.0, None], number=3, treatment=ONE),
        None,
        "environment_or_runtime_error",
        Decision("dropped", UNSCORED),
    ),
    FinishedGroup(
        group([1.0, 1.0], number=4, treatment=BOTH), None, "not_frontier", Decision("surplus")
    ),
]


def metrics(groups: list[FinishedGroup] = GROUPS, **changes: Any) -> dict[str, float]:
    values = {"drops": {ZERO_STD: 1, UNSCORED: 1}, "waves": 1, **changes}
    return {
        name.removeprefix("rollout/shopsim/"): value
        for name, value in step_metrics(groups, curriculum(), **values).items()
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("trajectory_count", 10),
        ("group_count", 5),
        ("train_trajectory_count", 4),
        ("train_group_count", 2),
        ("scored_rate", 9 / 10),
        ("reward_mean", 4.5 / 9),
        ("strict_reward_mean", 4.5 / 9),
        ("success_rate", 4 / 9),
        ("skill_free_group_rate", 1 / 5),
        ("assisted_empty_group_rate", 1 / 5),
        ("skills_per_assisted_group_mean", 5 / 4),
        ("chunk/brand/inclusion_rate", 3 / 4),
        ("chunk/calm/inclusion_rate", 2 / 4),
        ("chunk/brand/target_rho", 0.8999999999999999),
        ("chunk/calm/target_rho", 0.5499999999999999),
        ("q", 0.2),
        ("rho_min", 0.5499999999999999),
        ("rho_mean", 0.725),
        ("rho_max", 0.8999999999999999),
        ("all_wrong_group_rate", 2 / 4),
        ("full_skill_retry_rate", 2 / 5),
        ("full_skill_retry_success_rate", 1 / 2),
        ("internalization_deficit_rate", 1 / 5),
        ("pending_analysis_rate", 1 / 5),
        ("runtime_error_group_rate", 1 / 5),
        ("technical_group_drop_count", 1),
        ("technical_group_drop_rate", 1 / 3),
        ("zero_std_group_drop_count", 1),
        ("zero_std_group_drop_rate", 1 / 3),
        ("wave_count", 1),
        ("surplus_group_count", 1),
        ("tied_group_kept_count", 0),
        ("mixed_success_group_rate", 1 / 4),
        ("all_wrong_varied_group_rate", 1 / 4),
        ("success_rate/skill_free", 1 / 2),
        ("success_rate/assisted", 3 / 5),
        ("success_rate/assisted_empty", 0),
        ("scored_trajectory_count/assisted", 5),
        ("technical_failure/environment_count", 1),
        ("termination/purchase_count", 9),
        ("sampled_token_count", 200),
        ("read_token_count", 800),
        ("log_prob_mean", -0.5),
        ("retry_token_count", 40),
    ],
)
def test_a_step_by_hand(name: str, value: float) -> None:
    assert metrics()[name] == pytest.approx(value)


def test_undefined_rates_are_absent_and_their_denominators_are_there() -> None:
    values = metrics(GROUPS[:1], drops={})
    for name in (
        "skills_per_assisted_group_mean",
        "chunk/brand/inclusion_rate",
        "full_skill_retry_success_rate",
        "technical_group_drop_count",
        "technical_group_drop_rate",
        "zero_std_group_drop_count",
        "success_rate/assisted",
        "invalid_action_rate",
    ):
        assert name not in values
    assert values["assisted_group_count"] == 0
    assert values["full_skill_retry_count"] == 0
    assert values["scored_trajectory_count/assisted"] == 0


def test_no_group_at_all_is_not_an_error() -> None:
    values = metrics([], drops={}, waves=0)
    assert values["group_count"] == 0
    assert "success_rate" not in values


def test_every_value_is_a_finite_float() -> None:
    for name, value in metrics().items():
        assert type(value) is float, name
        assert math.isfinite(value), name


def test_turns_errors_and_invalid_actions_are_counted_over_episodes() -> None:
    bad = {"protocol_error": {"code": "mixed_content"}, "environment": None}
    cut = {"policy_failure": {"code": "generation_length"}, "environment": None}
    wrong = {"environment": {"action_feedback": {"valid": False}}}
    right = {"environment": {"action_feedback": {"valid": True}}}
    outcomes = (
        MadeUpOutcome("a", 0.0, steps=(bad, wrong, right)),
        MadeUpOutcome("b", 1.0, won=True, steps=(cut,)),
    )
    item = Group(0, 1, FREE, sample_indices(0, 2), outcomes)
    values = metrics([FinishedGroup(item, None, "not_frontier", Decision("kept"))])
    assert values["turn_count"] == 4
    assert values["turns_per_trajectory_mean"] == 2
    assert values["protocol_error_rate"] == 1 / 4
    assert values["policy_failure_rate"] == 1 / 4
    assert values["invalid_action_rate"] == 1 / 2
    assert values["protocol_error/mixed_content_count"] == 1
    assert values["policy_failure/generation_length_count"] == 1
