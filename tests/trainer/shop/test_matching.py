"""The fuzzy ratio (environment.md §4.4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.shop.matching import matches, ratio

TABLE = [
    ("白色 加厚", "白色", 100),
    ("黑色(升级版)", "黑色", 100),
    ("白色加厚", "白色", 67),
    ("黑色（升级版）", "黑色升级版", 55),
    ("m | l", "M/L", 100),
    ("180x200cm", "180x220cm", 89),
    ("???", "🔥", 100),
    ("红色🔥爆款", "红色?爆款", 100),
    ("1.5m", "1.8m", 75),
    ("l", "xl", 67),
    ("深海blue色", "天空blue款", 57),
]


@pytest.mark.parametrize(("purchased", "required", "percent"), TABLE)
def test_the_ratio_has_the_specified_value(purchased: str, required: str, percent: int) -> None:
    assert ratio(purchased, required) == percent
    assert matches(purchased, required) == (percent > 85)


_WORDS = st.lists(
    st.sampled_from(["a", "ab", "abc", "白", "白色", "黑色", "1.5m", "?", "🔥"]), max_size=5
)


@given(st.text(max_size=24) | _WORDS.map(" ".join), st.text(max_size=24) | _WORDS.map(" ".join))
def test_the_shortcuts_never_change_the_answer(left: str, right: str) -> None:
    assert matches(left, right) == (ratio(left, right) > 85)


@given(
    st.text(alphabet="ab", min_size=1, max_size=30), st.text(alphabet="ab", min_size=1, max_size=30)
)
def test_the_shortcuts_hold_for_close_texts(left: str, right: str) -> None:
    assert matches(left, right) == (ratio(left, right) > 85)
