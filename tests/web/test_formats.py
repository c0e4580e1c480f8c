"""Numbers, times and hashes read the same on every page."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone, translation

from intraskill_web.core import formats
from intraskill_web.core.tables import Column
from intraskill_web.core.twin import safe_cell


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (formats.rate(0.8321), "0.832"),
        (formats.rate(-0.5, 2), "−0.50"),
        (formats.rate(-0.0001), "0.000"),
        (formats.rate(None), "–"),
        (formats.effect(-0.0111), "−0.011"),
        (formats.effect(None), "–"),
        (formats.interval(-0.011, 0.0617), "[−0.011, +0.062]"),
        (formats.interval(None, 0.1), ""),
        (formats.count(5120), "5,120"),
        (formats.count(None), "–"),
        (formats.percent(0.45), "45 %"),
        (formats.duration(2.84), "2.8 s"),
        (formats.duration(45.4), "45 s"),
        (formats.duration(850), "14 min 10 s"),
        (formats.duration(14_700), "4 h 05 min"),
        (formats.duration(180_000), "2 d 02 h"),
        (formats.duration(None), "–"),
        (formats.size(800), "800 B"),
        (formats.size(8_808_038), "8.4 MiB"),
        (formats.size(None), "–"),
        (formats.hash8("0123456789abcdef"), "01234567"),
        (formats.hash8(""), "–"),
    ],
)
def test_values_in_words(made: str, text: str) -> None:
    assert made == text


def test_durations_and_ages_in_chinese() -> None:
    with translation.override("zh-hans"):
        assert formats.duration(850) == "14 分 10 秒"
        assert formats.ago(timezone.now() - timedelta(minutes=5)) == "5 分钟前"


@pytest.mark.parametrize(
    ("age", "text"), [(3, "3 s ago"), (125, "2 min ago"), (7300, "2 h ago"), (200_000, "2 d ago")]
)
def test_ages(age: int, text: str) -> None:
    assert formats.ago(timezone.now() - timedelta(seconds=age)) == text


@pytest.mark.parametrize(("text", "chinese"), [("浅灰", True), ("a，b", True), ("grey", False)])
def test_chinese_is_recognised(text: str, chinese: bool) -> None:
    assert formats.has_cjk(text) is chinese


def test_columns_show_kinds_and_unknown_values() -> None:
    assert Column("a", "A", "effect").show(0.05) == "+0.050"
    assert Column("a", "A", "rate").show(None) == "–"
    assert Column("a", "A", "count").numeric
    assert not Column("a", "A", "mono").numeric


@pytest.mark.parametrize(
    ("value", "cell"),
    [("=1+1", "'=1+1"), ("@x", "'@x"), ("-1", "'-1"), ("plain", "plain"), (-1.5, -1.5), (None, "")],
)
def test_text_never_becomes_a_formula_in_a_spreadsheet(value: object, cell: object) -> None:
    assert safe_cell(value) == cell
