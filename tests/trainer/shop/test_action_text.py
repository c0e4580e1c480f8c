"""Actions written as text (environment.md §2.3)."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.shop.action_text import read_action
from trainer.shop.types import Action


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("search[冰箱]", Action("search", "冰箱")),
        ("  Click[buy now] ", Action("click", "buy now")),
        ("CLICK[a[b]c]", Action("click", "a[b]c")),
        ("想一想\nAction:   search[冰箱]  \n", Action("search", "冰箱")),
        ("action : click[next >]", Action("click", "next >")),
        ("thought\\nAction: click[x]", Action("click", "x")),
        ("click[ x ]", Action("click", " x ")),
        ("search", Action("search", "")),
        ("search[]", Action("search", "")),
        ("click[颜色=a[1], b]", Action("click", "颜色=a[1], b")),
    ],
)
def test_an_action_is_read(text: str, action: Action) -> None:
    assert read_action(text) == action


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "invalid_format"),
        (7, "invalid_format"),
        ("", "invalid_format"),
        (" \n ", "invalid_format"),
        ("Action:", "invalid_format"),
        ("buy now", "invalid_format"),
        ("think[x]", "invalid_format"),
        ("click[x] please", "invalid_format"),
        ("I will click[x]", "invalid_format"),
        ("click[a\nb]", "invalid_format"),
        ("a\nb", "invalid_format"),
        ("[x]", "invalid_format"),
        ("click[a], click[b]", "multiple_actions_not_allowed"),
        ("click[a]；search[b]", "multiple_actions_not_allowed"),
        ("click[a]click[b]", "multiple_actions_not_allowed"),
        ("Action: click[a]\nAction: click[b]", "multiple_actions_not_allowed"),
    ],
)
def test_other_text_has_a_reason(text: object, reason: str) -> None:
    assert read_action(text) == reason


@given(st.text() | st.none() | st.integers())
def test_nothing_breaks_the_reader(text: object) -> None:
    assert isinstance(read_action(text), Action | str)


@pytest.mark.parametrize(
    "text",
    [
        "Action: click[x" + " " * 50_000 + "y",
        "click[x]" + " " * 50_000 + "y",
        "\n".join(["click[x]" + " " * 100] * 500),
        "Action:" * 10_000,
        "[" * 50_000,
        "a" * 50_000 + "\t" * 50_000 + ":",
    ],
)
def test_a_long_text_is_read_at_once(text: str) -> None:
    started = time.thread_time()
    assert read_action(text) != ""
    assert time.thread_time() - started < 0.5
