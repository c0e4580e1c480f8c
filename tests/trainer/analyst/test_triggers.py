"""Which groups are looked at, and by which trace."""

from __future__ import annotations

from typing import Any

import pytest

from tests.trainer.analyst.test_spine import bank
from tests.trainer.grpo.test_training_round import training_run
from trainer.analyst.settings import TriggerSettings
from trainer.analyst.triage_queue import PENDING, group_lines, source_of, trigger_of, waiting_cases
from trainer.shop.world import World

WIDE = TriggerSettings(low_mean=True, mean_at_most=0.25, variance_at_most=0.2)


def line(successes: list[int], **changes: Any) -> dict[str, Any]:
    return {
        "group_index": 3,
        "step": 1,
        "classification": "not_frontier",
        "all_wrong": not any(successes),
        "scored": [True] * len(successes),
        "successes": [bool(each) for each in successes],
        "rewards": [0.5 + each / 2 for each in successes],
        "sample_indices": list(range(24, 24 + len(successes))),
        **changes,
    }


@pytest.mark.parametrize(
    ("group", "settings", "expected"),
    [
        (line([0] * 8, classification=PENDING), TriggerSettings(), "all_wrong"),
        (line([0] * 8, classification="model_internalization_deficit"), WIDE, None),
        (line([0, 0, 0, 1, 0, 0, 0, 1]), WIDE, "low_mean"),
        (line([0, 0, 0, 1, 0, 0, 0, 1]), TriggerSettings(), None),
        (line([0, 0, 1, 1, 0, 0, 0, 1]), WIDE, None),
        (line([0, 0, 0, 1]), WIDE, "low_mean"),
        (line([0, 0, 1]), TriggerSettings(low_mean=True, mean_at_most=0.5), None),
        (line([0, 0, 0, 1], scored=[True, True, True, False]), WIDE, None),
        (line([0, 0, 0, 1], rewards=[0.0, 1.0, 0.0, 1.0]), WIDE, None),
        (line([0, 0, 0, 1], rewards=[0.2, 0.9, 0.2, 0.9]), WIDE, "low_mean"),
    ],
)
def test_the_thresholds_are_those_that_are_stated(
    group: dict[str, Any], settings: TriggerSettings, expected: str | None
) -> None:
    assert trigger_of(group, settings) == expected


def test_the_first_failed_sibling_stands_for_a_group_that_rarely_wins() -> None:
    assert source_of(line([1, 0, 0, 0]), "low_mean") == "train-group-000000003-sample-000000025"


def test_groups_that_rarely_win_wait_with_a_failed_sibling(mini: World, tmp_path: Any) -> None:
    training_run(mini, tmp_path / "train").run()
    settings = TriggerSettings(
        low_mean=True, mean_at_most=0.75, variance_at_most=1.0, minimum_episodes=4
    )
    cases = waiting_cases(tmp_path / "train", bank(), settings)
    chosen = {case.line["group_index"]: case for case in cases}
    expected = {
        group["group_index"]
        for group in group_lines(tmp_path / "train")
        if trigger_of(group, settings) is not None
    }
    assert set(chosen) == expected
    rare = [case for case in cases if case.trigger == "low_mean"]
    assert rare, "the wider trigger finds more than the published one"
    for case in rare:
        assert case.trace["final"]["reward_detail"]["r_success"] == 0
        shown = [chunk["skill_id"] for chunk in case.trace["selected_skills"]]
        assert shown == case.line["treatment"]["skill_ids"]
    again = waiting_cases(tmp_path / "train", bank(), settings, known=list(chosen)[:-1])
    assert [case.line["group_index"] for case in again] == list(chosen)[-1:]
