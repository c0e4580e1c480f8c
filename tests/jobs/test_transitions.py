"""The one table of legal moves, and what a round's state follows from."""

from __future__ import annotations

from itertools import product

import pytest

from jobs.transitions import (
    ACTIVE,
    MOVES,
    TERMINAL,
    RoundState,
    State,
    round_state,
    sources,
)


def test_terminal_states_never_change() -> None:
    assert not any(MOVES[state] for state in TERMINAL)


def test_every_state_is_either_active_or_terminal() -> None:
    assert set(State) == ACTIVE | TERMINAL and not ACTIVE & TERMINAL
    assert set(MOVES) == set(State)


def test_every_active_state_can_end() -> None:
    for state in ACTIVE:
        assert MOVES[state] & TERMINAL, state
        assert State.LOST in MOVES[state]


def test_success_comes_only_from_work() -> None:
    assert sources(State.SUCCEEDED) == {State.RUNNING, State.STOPPING}


def test_sources_and_moves_agree() -> None:
    for source, target in product(State, State):
        assert (source in sources(target)) == (target in MOVES[source])


@pytest.mark.parametrize(
    ("stages", "expected"),
    [
        ([None] * 6, RoundState.PLANNED),
        (["succeeded", "running", None], RoundState.RUNNING),
        (["succeeded", None, None], RoundState.RUNNING),
        (["succeeded", "stopping", None], RoundState.STOPPING),
        (["succeeded", "stopped", None], RoundState.STOPPED),
        (["succeeded", "lost", None], RoundState.FAILED),
        (["succeeded", "incomplete", None], RoundState.FAILED),
        (["succeeded", "failed", None], RoundState.FAILED),
        (["succeeded"] * 6, RoundState.SUCCEEDED),
    ],
)
def test_a_round_is_as_its_stages_are(stages: list[str | None], expected: RoundState) -> None:
    assert round_state(stages) == expected
