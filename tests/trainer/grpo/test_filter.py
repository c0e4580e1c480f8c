"""The waves of the dynamic sampling filter: the scenarios of training.md §4.8, and edges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from tests.trainer.grpo.outcomes import group, mixed, tied, unscored
from trainer.grpo.filter import (
    UNSCORED,
    ZERO_STD,
    Decision,
    FailureStreak,
    TooManyFailedGroups,
    WaveFilter,
    is_tied,
)
from trainer.grpo.groups import Group

Maker = Callable[[int], Group]


def sequence(*parts: tuple[int, Maker], rest: Maker) -> Iterator[Group]:
    number = 0
    for count, maker in parts:
        for _ in range(count):
            yield maker(number)
            number += 1
    while True:
        yield rest(number)
        number += 1


def run_waves(
    groups: Iterator[Group], *, target: int = 16, wave: int = 32, limit: int = 100
) -> tuple[WaveFilter, list[Decision]]:
    waves = WaveFilter(target=target, wave=wave, streak=FailureStreak(limit))
    decisions = []
    while waves.open_wave():
        decisions += [waves.offer(next(groups)) for _ in range(wave)]
    return waves, decisions


@pytest.mark.parametrize(
    ("groups", "waves", "tied_kept", "drops"),
    [
        (sequence(rest=mixed), 1, 0, {}),
        (sequence(rest=tied), 1, 16, {ZERO_STD: 16}),
        (sequence((20, unscored), rest=mixed), 2, 0, {UNSCORED: 20}),
        (sequence((14, mixed), rest=tied), 1, 2, {ZERO_STD: 16}),
        (sequence((18, tied), rest=mixed), 1, 2, {ZERO_STD: 16}),
        (sequence((16, tied), rest=mixed), 1, 0, {ZERO_STD: 16}),
        (sequence((17, unscored), (32, tied), rest=mixed), 2, 15, {UNSCORED: 17, ZERO_STD: 17}),
    ],
    ids=["mixed", "tied", "20 technical", "14 mixed", "18 tied first", "16 tied first", "second"],
)
def test_the_scenarios_of_the_specification(
    groups: Iterator[Group], waves: int, tied_kept: int, drops: dict[str, int]
) -> None:
    result, decisions = run_waves(groups)
    verdicts = Counter(decision.verdict for decision in decisions)
    assert result.waves == waves
    assert result.kept == 16 == verdicts["kept"] + verdicts["kept_tied"]
    assert verdicts["kept_tied"] == tied_kept
    assert dict(result.drops) == drops


def test_groups_beyond_the_target_are_surplus_but_still_judged() -> None:
    _, decisions = run_waves(sequence((20, mixed), (6, tied), rest=mixed))
    assert [decision.verdict for decision in decisions] == (
        ["kept"] * 16 + ["surplus"] * 4 + ["dropped"] * 6 + ["surplus"] * 6
    )


def test_kept_ties_are_never_displaced_by_better_groups() -> None:
    _, decisions = run_waves(sequence((4, tied), rest=mixed), target=4, wave=5)
    assert [decision.verdict for decision in decisions] == [
        "dropped", "kept_tied", "kept_tied", "kept_tied", "kept"
    ]  # fmt: skip


def test_only_technical_losses_can_open_another_wave() -> None:
    result, _ = run_waves(sequence((3, unscored), rest=tied), target=4, wave=6)
    assert result.waves == 2
    result, _ = run_waves(sequence((2, unscored), rest=tied), target=4, wave=6)
    assert result.waves == 1


def test_an_unscored_group_is_never_salvaged() -> None:
    _, decisions = run_waves(sequence((1, unscored), rest=mixed), target=1, wave=1)
    assert decisions[0] == Decision("dropped", UNSCORED)


def test_reasons_are_named_for_drops_and_kept_ties() -> None:
    _, decisions = run_waves(sequence((1, tied), (1, tied), rest=mixed), target=1, wave=2)
    assert decisions == [Decision("dropped", ZERO_STD), Decision("kept_tied", ZERO_STD)]
    assert not decisions[0].kept and decisions[1].kept


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.0, 0.0], True),
        ([0.5, 0.5 + 1e-6 / 2], True),
        ([0.5, 0.5 + 2e-6], False),
        ([0.0, 1.0], False),
        ([1.0], True),
    ],
)
def test_a_tie_is_a_spread_of_at_most_a_millionth(scores: list[float], expected: bool) -> None:
    assert is_tied(group(scores)) is expected


def test_too_many_failed_groups_in_a_row_end_the_run_with_their_causes() -> None:
    with pytest.raises(TooManyFailedGroups, match=r"8 groups in a row.*OSError @ reset"):
        run_waves(sequence(rest=unscored), limit=8)


def test_any_scored_group_resets_the_streak_even_a_dropped_one() -> None:
    streak = FailureStreak(3)
    for item in (unscored(), unscored(), tied(), unscored(), unscored(), mixed()):
        streak.note(item)
    assert streak.count == 0
    streak.note(unscored())
    streak.note(unscored())
    with pytest.raises(TooManyFailedGroups):
        streak.note(unscored())


def test_an_empty_group_counts_as_failed() -> None:
    with pytest.raises(TooManyFailedGroups, match="no episodes"):
        FailureStreak(1).note(group([]))


def test_the_streak_goes_on_from_a_resumed_count() -> None:
    streak = FailureStreak(8, count=7)
    with pytest.raises(TooManyFailedGroups):
        streak.note(unscored())


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        FailureStreak(limit)


def test_a_wave_that_can_never_fill_the_target_is_refused() -> None:
    with pytest.raises(ValueError, match="never fill"):
        WaveFilter(target=16, wave=8, streak=FailureStreak(8))
