"""Aligning two episodes: equal turns once, then equal actions at one height."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from intraskill_web.episodes.compare import compare
from intraskill_web.episodes.transcript import transcript
from intraskill_web.episodes.turns import Turn


def turns(actions: str, pages: str = "") -> list[Turn]:
    """One turn a letter; a letter of ``pages`` is what came back, else the action itself."""
    steps = [
        {
            "model": {"tool_calls": [{"name": "click", "arguments": {"value": action}}]},
            "environment": {"observation": (pages or actions)[i]},
        }
        for i, action in enumerate(actions)
    ]
    return transcript({"steps": steps}).turns


def shape(a: list[Turn], b: list[Turn]) -> list[tuple[str, str]]:
    return [
        (p.a.argument if p.a else "-", p.b.argument if p.b else "-") for p in compare(a, b).pairs
    ]


def test_the_first_divergence_is_the_first_turn_that_differs() -> None:
    found = compare(turns("abcd"), turns("abxd"))
    assert found.divergence == 2
    assert [pair.kind for pair in found.pairs] == ["same", "same", "action", "same"]


def test_the_same_action_with_another_answer_diverges_too() -> None:
    found = compare(turns("abc", "123"), turns("abc", "153"))
    assert found.divergence == 1
    assert [pair.kind for pair in found.pairs] == ["same", "page", "same"]


def test_equal_episodes_do_not_diverge() -> None:
    assert compare(turns("abc"), turns("abc")).divergence is None
    assert compare([], []).divergence is None


def test_behind_the_divergence_equal_actions_come_to_one_height() -> None:
    assert shape(turns("axcd"), turns("aybbcd")) == [
        ("a", "a"),
        ("x", "y"),
        ("-", "b"),
        ("-", "b"),
        ("c", "c"),
        ("d", "d"),
    ]


def test_one_that_goes_on_alone_diverges_where_the_other_ends() -> None:
    found = compare(turns("ab"), turns("abc"))
    assert (found.divergence, found.pairs[2].kind, found.pairs[2].anchor) == (2, "only_b", "b3")


@given(st.text("abc", max_size=12), st.text("abc", max_size=12))
def test_every_turn_of_both_is_shown_once_and_in_order(a: str, b: str) -> None:
    pairs = compare(turns(a), turns(b)).pairs
    assert "".join(p.a.argument for p in pairs if p.a) == a
    assert "".join(p.b.argument for p in pairs if p.b) == b


def test_a_turn_that_one_alone_has_is_numbered_with_its_side() -> None:
    pairs = compare(turns("ax"), turns("abcx")).pairs
    assert [pair.number for pair in pairs] == ["1", "2", "3B", "4B"]
    pairs = compare(turns("axc"), turns("aybc")).pairs
    assert [pair.number for pair in pairs] == ["1", "2", "3B", "3/4"]
    assert [pair.number for pair in compare(turns("ab"), turns("a")).pairs] == ["1", "2A"]
