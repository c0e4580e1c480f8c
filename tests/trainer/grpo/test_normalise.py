"""Advantages: the example of appendix A5, and what must hold for any group."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.grpo.normalise import RewardRow, normalise

A5 = [
    RewardRow(0, 10, 0.0),
    RewardRow(0, 10, 0.0),
    RewardRow(0, 11, 1.0),
    RewardRow(1, 20, 0.25),
    RewardRow(1, 21, 0.25),
]


def test_appendix_a5() -> None:
    assert normalise(A5, std_normalisation=True) == pytest.approx(
        [-0.70711, -0.70711, 0.70711, 0, 0], abs=1e-5
    )


def test_two_rollouts_give_the_published_figure() -> None:
    rows = [RewardRow(0, 0, 0.0), RewardRow(0, 1, 1.0)]
    expected = 0.5 / (math.sqrt(0.5) + 1e-6)
    assert normalise(rows, std_normalisation=True) == pytest.approx([-expected, expected])


def test_without_std_the_advantage_is_reward_minus_mean() -> None:
    assert normalise(A5, std_normalisation=False) == [-0.5, -0.5, 0.5, 0.0, 0.0]


def test_a_rollout_counts_once_however_many_rows_it_has() -> None:
    winner_in_two = [RewardRow(0, 0, 1.0), RewardRow(0, 0, 1.0), RewardRow(0, 1, 0.0)]
    assert normalise(winner_in_two, std_normalisation=False) == [0.5, 0.5, -0.5]


def test_equal_rewards_give_zero_and_a_lone_rollout_too() -> None:
    rows = [RewardRow(0, rollout, 0.7) for rollout in range(8)]
    assert normalise(rows, std_normalisation=True) == [0.0] * 8
    assert normalise([RewardRow(0, 0, 0.7)], std_normalisation=True) == [0.0]


def test_rows_of_one_rollout_must_agree() -> None:
    with pytest.raises(ValueError, match=r"rollout 3: its rows carry the rewards 0.0 and 1.0"):
        normalise([RewardRow(0, 3, 0.0), RewardRow(0, 3, 1.0)], std_normalisation=True)


rewards = st.lists(st.floats(0, 1, width=32), min_size=2, max_size=8)


@given(st.lists(rewards, min_size=1, max_size=4), st.booleans(), st.randoms())
def test_order_and_segments_do_not_matter(
    groups: list[list[float]], std: bool, random: object
) -> None:
    rows = [
        RewardRow(number, rollout, reward)
        for number, group in enumerate(groups)
        for rollout, reward in enumerate(group)
    ]
    advantages = dict(zip(rows, normalise(rows, std_normalisation=std), strict=True))
    shuffled = rows * 2
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    again = normalise(shuffled, std_normalisation=std)
    assert again == [advantages[row] for row in shuffled]


@given(rewards)
def test_the_advantages_of_a_group_add_up_to_nothing(group: list[float]) -> None:
    rows = [RewardRow(0, rollout, reward) for rollout, reward in enumerate(group)]
    values = normalise(rows, std_normalisation=False)
    assert math.fsum(values) == pytest.approx(0, abs=1e-6)
    order = sorted(range(len(group)), key=lambda place: group[place])
    assert [values[place] for place in order] == sorted(values)
