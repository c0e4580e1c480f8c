"""The published parser ``instruction-budget-v1`` (environment.md §4.7): the first hit wins.

Commas are deleted before matching, so a rule can reach across clauses, and a bare numeral after
预算 counts: 预算有限，想买一个台灯 reads as a ceiling of 1. Published scores depend on it, so it
stays; ``clauses.py`` mends it under another name.
"""

from __future__ import annotations

import re

from trainer.shop.budget.numerals import NUMERALS, read_numeral
from trainer.shop.budget.rules import (
    APPROXIMATELY,
    AT_LEAST,
    CURRENCY,
    NO_BUDGET,
    NOT_MORE,
    PREFIX,
    RANGE,
    RANGE_LEAD,
    WITHIN,
    Budget,
    Rule,
    amount,
    first_hit,
    number,
    without_endless_numbers,
)

_N = number()
_TAILS = (
    "以内|以下|之内|内|都不到|能拿下|拿下|帮我搞定|能搞定|搞定|能买|来买|应该够|基本能买到"
    "|这个价|的价格|的价位|价位|的预算|预算"
)


def _rule(
    name: str,
    pattern: str,
    *,
    approximate: bool = False,
    approximate_if: tuple[str, ...] = (),
    least: float = 0.0,
    refuses: bool = False,
) -> Rule:
    return Rule(name, re.compile(pattern), approximate, approximate_if, least, refuses)


RULES: tuple[Rule, ...] = (
    _rule("range-with-prefix", rf"{PREFIX}\s*{RANGE_LEAD}\s*{RANGE}{CURRENCY}?\s*{WITHIN}"),
    _rule("range-with-currency", rf"(?:{PREFIX}\s*{RANGE_LEAD}\s*)?{RANGE}{CURRENCY}"),
    _rule("not-more-than", rf"{NOT_MORE}\s*{_N}\s*{CURRENCY}"),
    _rule("lower-bound", rf"{PREFIX}.{{0,8}}?{AT_LEAST}\s*{_N}", refuses=True),
    _rule("open-ended", rf"{PREFIX}.{{0,8}}?{_N}\s*\+", refuses=True),
    _rule(
        "prefix",
        rf"{PREFIX}[^\d{NUMERALS}。；;]{{0,12}}?{_N}\s*(?P<some>[来多])?\s*{CURRENCY}?"
        rf"\s*(?:以内|以下|之内|内|(?P<about>{APPROXIMATELY}))?",
        approximate_if=("some", "about"),
    ),
    _rule("about-before", rf"(?:差不多|大约|大概|约)\s*{_N}\s*{CURRENCY}", approximate=True),
    _rule("about-after", rf"{_N}\s*(?:左右|上下|大约)\s*{CURRENCY}", approximate=True),
    _rule("some", rf"{_N}\s*多\s*{CURRENCY}", approximate=True),
    _rule(
        "about-budget",
        rf"{_N}\s*(?:左右|上下)\s*的?(?:预算|价位|价格)",
        approximate=True,
        least=100.0,
    ),
    _rule(
        "about-thousands",
        rf"(?P<value>[{NUMERALS}]*[千万][{NUMERALS}]*)\s*(?:左右|上下)",
        approximate=True,
        least=1000.0,
    ),
    _rule("within-will-do", rf"{_N}\s*(?:以内|以下|内)\s*能?(?:拿下|搞定)"),
    _rule("about-will-do", rf"{_N}\s*(?:左右|上下)\s*能?(?:拿下|搞定)", approximate=True),
    _rule("prepared", rf"(?:准备了?|给到)\s*{_N}\s*{CURRENCY}"),
    _rule(
        "currency-tail",
        rf"{_N}\s*{CURRENCY}\s*(?:(?P<about>{APPROXIMATELY})|{_TAILS})",
        approximate_if=("about",),
    ),
)

_TEN_THOUSANDS = re.compile(rf"{PREFIX}\s*(?:控制)?[在为是]?\s*(\d+)\s*万\s*(\d+)")
_SOME_TENS = re.compile(rf"([二三四五六七八九])十几\s*{CURRENCY}")


def parse_published(text: str) -> Budget:
    """The ceiling that ``instruction-budget-v1`` finds in an instruction."""
    text = without_endless_numbers(text.replace(",", "").replace("，", ""))
    return ten_thousands(text) or first_hit(RULES, text) or spoken(text) or NO_BUDGET


def ten_thousands(text: str) -> Budget | None:
    """预算1万2: twelve thousand."""
    found = _TEN_THOUSANDS.search(text)
    if found is None:
        return None
    value = amount(found[1], "万") + amount(found[2], "千")
    return Budget(value, "ten-thousands") if value > 0 else None


def spoken(text: str) -> Budget | None:
    """The two spoken ceilings without an exact number: 三十几块 and 个位数价格."""
    found = _SOME_TENS.search(text)
    if found:
        return Budget(float(read_numeral(found[1]) * 10 + 9), "some-tens")
    return Budget(9.0, "one-digit") if "个位数价格" in text else None
