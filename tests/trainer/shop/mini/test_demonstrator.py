"""The demonstrator: wins with all habits, loses without, and obeys texts at the stated rates."""

from __future__ import annotations

import random

import pytest

from trainer.shop.mini.demonstrator import ALL_HABITS, draw_habits
from trainer.shop.mini.episodes import demonstrate, solver
from trainer.shop.mini.habits import FIRM_RATE, HABITS, HASTE, INERT, Habit
from trainer.shop.mini.world import DraftWorld, draft_world
from trainer.shop.types import Task
from trainer.shop.world import World


@pytest.fixture(scope="module")
def draft() -> DraftWorld:
    return draft_world()


@pytest.fixture(scope="module")
def tasks(mini: World) -> list[Task]:
    return [mini.task(task_id) for task_id in mini.split("val")[:400]]


def share(draft: DraftWorld, tasks: list[Task], habits: frozenset[str]) -> float:
    """Share of tasks that a shopper with ``habits`` wins."""
    return sum(demonstrate(draft, task, habits).success for task in tasks) / len(tasks)


def test_with_every_habit_each_task_is_won_within_the_limit(
    mini: World, draft: DraftWorld, tasks: list[Task]
) -> None:
    solve = solver(draft)
    actions = [solve(task) for task in tasks]
    assert None not in actions
    assert max(filter(None, actions)) <= mini.profile.max_actions


@pytest.mark.parametrize("habit", [habit.name for habit in HABITS])
def test_each_habit_is_needed_somewhere(draft: DraftWorld, tasks: list[Task], habit: str) -> None:
    assert share(draft, tasks, ALL_HABITS - {habit}) < 0.93


def test_without_any_habit_little_is_won(draft: DraftWorld, tasks: list[Task]) -> None:
    assert share(draft, tasks, frozenset()) < 0.2


@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.name)
def test_firm_words_raise_a_habit_to_the_full_rate_and_vague_ones_half_of_the_way(
    habit: Habit,
) -> None:
    rng = random.Random(habit.name)

    def rate(*texts: str) -> float:
        return sum(habit.name in draw_habits(texts, rng) for _ in range(2_000)) / 2_000

    assert rate() == pytest.approx(habit.base_rate, abs=0.04)
    assert rate(*INERT) == pytest.approx(habit.base_rate, abs=0.04)
    half = (habit.base_rate + FIRM_RATE) / 2
    for text in habit.vague:
        assert rate(text) == pytest.approx(half, abs=0.04)
    for text in habit.firm:
        assert rate(text) == pytest.approx(FIRM_RATE, abs=0.01)


def test_haste_drops_habits_that_cost_turns_and_no_others() -> None:
    rng = random.Random(5)
    firm = [habit.firm[0] for habit in HABITS]
    kept = {habit.name: 0 for habit in HABITS}
    for _ in range(2_000):
        for name in draw_habits([*firm, HASTE[0]], rng):
            kept[name] += 1
    assert all(kept[name] < 1_830 for name in ("colour", "size", "details"))
    assert all(kept[name] > 1_950 for name in ("brand", "next_page", "missing_option", "budget"))


def test_no_sentence_calls_for_two_things() -> None:
    sentences = [text for habit in HABITS for text in (*habit.firm, *habit.vague)]
    sentences += [*INERT, *HASTE]
    assert len(set(sentences)) == len(sentences)


def test_a_slip_costs_a_turn_and_the_shopper_goes_on(draft: DraftWorld, tasks: list[Task]) -> None:
    clean = demonstrate(draft, tasks[0], ALL_HABITS)
    slipped = demonstrate(
        draft, tasks[0], ALL_HABITS, lambda turn: ["chair"] if turn == 2 else None
    )
    assert [turn.words for turn in slipped.turns if turn.meant] == [
        turn.words for turn in clean.turns
    ]
    assert slipped.turns[1].words == ("chair",)
    assert slipped.turns[2].page == "error"
    assert slipped.success
