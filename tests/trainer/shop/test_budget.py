"""Price ceilings in instructions (environment.md §4.7, §7.2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.errors import InputError
from trainer.shop.budget import budget_parser
from trainer.shop.budget.clauses import parse_clauses
from trainer.shop.budget.numerals import NUMERALS, read_numeral
from trainer.shop.budget.published import parse_published

PUBLISHED_VALUES = [
    ("预算在1000元以下", 1000),
    ("价格不超过 2199 元", 2199),
    ("价格在70元左右", 77),
    ("价格在130-140元之间", 140),
    ("价格30元到40元之间", 40),
    ("价格在10-20之间", 20),
    ("预算4k+", None),
    ("预算在1万元左右", 11000),
    ("预算1万2以内", 12000),
    ("差不多30元左右", 33),
    ("预算七十元上下", 77),
    ("价格别超过160元", 160),
    ("预期价格在350元和400元之间", 400),
    ("预算是17000元", 17000),
    ("预算不超过一千八", 1800),
    ("预算就二十来块钱", 22),
    ("五元以内", 5),
    ("价格要超过20元", None),
]


@pytest.mark.parametrize(("text", "ceiling"), PUBLISHED_VALUES)
def test_the_published_parser_finds_the_specified_ceiling(text: str, ceiling: float | None) -> None:
    assert parse_published(text).ceiling == ceiling


@pytest.mark.parametrize(("text", "ceiling"), PUBLISHED_VALUES)
def test_the_clause_parser_agrees_on_them(text: str, ceiling: float | None) -> None:
    assert parse_clauses(text).ceiling == ceiling


@pytest.mark.parametrize(
    ("text", "ceiling"),
    [
        ("三十几块的杯子", 39),
        ("个位数价格", 9),
        ("想要一百多块的", 110),
        ("一千五左右", 1650),
        ("200以内能拿下", 200),
        ("准备了300元", 300),
        ("800元能买", 800),
        ("50元出头", 55),
        ("150左右的预算", 165),
        ("上限为99元", 99),
        ("价格不低于50元", None),
        ("预算零元", None),
        ("想买一个杯子", None),
        ("预算1,299元以内", 1299),
    ],
)
def test_each_later_rule_of_the_published_parser(text: str, ceiling: float | None) -> None:
    assert parse_published(text).ceiling == ceiling


def test_the_published_parser_reads_a_ceiling_of_one_across_the_comma() -> None:
    assert parse_published("预算有限，想买一个台灯").ceiling == 1
    assert parse_clauses("预算有限，想买一个台灯").ceiling is None


@pytest.mark.parametrize(
    ("text", "ceiling"),
    [
        ("预算，大概300左右", 330),
        ("预算有限，100元以内", 100),
        ("想买3个杯子，预算200", 200),
        ("预算3个月用完", None),
        ("预算买一台，1,299元以内", 1299),
        ("a red lamp under $50", 50),
        ("budget of 1,200.50 yuan", 1200.5),
        ("no more than 30 yuan, for two", 30),
        ("a lamp over $20", None),
        ("around $40", 44),
        ("a 4k monitor below 2k yuan", 2000),
        ("under 20 years old", None),
    ],
)
def test_the_clause_parser_stays_within_clauses_and_reads_english(
    text: str, ceiling: float | None
) -> None:
    assert parse_clauses(text).ceiling == ceiling


@pytest.mark.parametrize(
    ("numeral", "value"),
    [
        ("二〇", 20),
        ("一千八", 1800),
        ("一万二", 12000),
        ("十五", 15),
        ("二十", 20),
        ("一百零五", 105),
        ("三万五千", 35000),
        ("一亿", 10**8),
        ("两百五十", 250),
        ("十万", 100000),
    ],
)
def test_numerals(numeral: str, value: int) -> None:
    assert read_numeral(numeral) == value


_TEXT = st.text(
    alphabet=st.sampled_from("预算价格在元块左右以内到不超过，。 +-~万千k019" + NUMERALS),
    max_size=25,
)


@pytest.mark.parametrize("digits", ["9", "九", "一万", "千"])
def test_a_number_without_end_is_no_price(digits: str) -> None:
    for text in (f"预算{digits * 5000}元以内", f"预算1万{digits * 5000}", f"{digits * 5000}元左右"):
        assert parse_published(text).ceiling is None
        assert parse_clauses(text).ceiling is None


@given(_TEXT)
def test_no_text_breaks_a_parser_and_every_ceiling_is_positive(text: str) -> None:
    for parse in (parse_published, parse_clauses):
        ceiling = parse(text).ceiling
        assert ceiling is None or ceiling > 0


def test_an_unknown_parser_is_refused() -> None:
    with pytest.raises(InputError, match="unknown budget parser"):
        budget_parser("guess")
