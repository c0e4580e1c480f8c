"""Our parser ``clause-budget-v1``: the published rules within one clause, and English.

Three differences from ``published.py``. The text is split into clauses first (thousands commas
stay), so no rule reaches into the next clause. A bare number after 预算 counts only when nothing
but connecting words stand between and no measure word follows it (预算想买一个 is no ceiling of
1). English ceilings ("under $50", "a budget of 30 yuan", "at least 20" as none) are read too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainer.shop.budget.numerals import NUMERALS
from trainer.shop.budget.published import RULES, spoken, ten_thousands
from trainer.shop.budget.rules import (
    APPROXIMATELY,
    CURRENCY,
    NO_BUDGET,
    NOT_MORE,
    PREFIX,
    Budget,
    Rule,
    first_hit,
    number,
    without_endless_numbers,
)

_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_CLAUSE_END = re.compile(r"[，,。；;！!？?\n]+|\.(?=\s|$)")
_MEASURE = "[个件款台只双条套盒瓶支张把包年月天寸升口位层次种]"
_CONNECTING = (
    f"(?:{NOT_MORE}|控制|要|大概|大约|差不多|约|就|只有|有|在|为|是|的话|只|最多|最好|：|:|\\s)*"
)

_PREFIX_NUMBER = re.compile(
    rf"{PREFIX}{_CONNECTING}{number()}(?![\d{NUMERALS}]|\s*(?:{_MEASURE}|[折成%]))"
    rf"\s*(?P<some>[来多])?\s*{CURRENCY}?\s*(?:以内|以下|之内|内|(?P<about>{APPROXIMATELY}))?"
)
_PREFIX_AMOUNT = re.compile(
    rf"{PREFIX}[^\d{NUMERALS}]{{0,12}}?{number()}\s*(?P<some>[来多])?\s*"
    rf"(?:{CURRENCY}\s*(?:以内|以下|之内|内|(?P<about>{APPROXIMATELY}))?"
    rf"|(?:以内|以下|之内|内|(?P<about_bare>{APPROXIMATELY})))"
)

_MONEY = (
    r"(?:[$¥￥]\s*)?(?P<value>\d+(?:\.\d+)?)\s*(?P<value_scale>k)?"
    r"(?![\d.]*\s*(?:%|percent|years?\b))"
)
_ENGLISH_AT_LEAST = r"\b(?:at least|over|above|more than|no less than|not less than)\b"
_ENGLISH_LIMIT = (
    r"\b(?:under|below|within|at most|up to|less than|no more than|not more than|not over"
    r"|max(?:imum)?(?: of)?|(?:a |my )?budget(?: is| of|:)?(?: around| about)?"
    r"|price limit(?: is| of)?)"
)
_NEGATED = r"(?<!not )(?<!no )(?<!nothing )(?<!never )"

_PREFIX_RULES = (
    Rule("prefix-number", _PREFIX_NUMBER, approximate_if=("some", "about")),
    Rule("prefix-amount", _PREFIX_AMOUNT, approximate_if=("some", "about", "about_bare")),
)
_ENGLISH_RULES = (
    Rule(
        "english-lower-bound",
        re.compile(rf"{_NEGATED}{_ENGLISH_AT_LEAST}\s*{_MONEY}", re.IGNORECASE),
        refuses=True,
    ),
    Rule("english-limit", re.compile(rf"{_ENGLISH_LIMIT}\s*{_MONEY}", re.IGNORECASE)),
    Rule(
        "english-about",
        re.compile(
            r"\b(?:around|about|roughly)\s*[$¥￥]\s*(?P<value>\d+(?:\.\d+)?)", re.IGNORECASE
        ),
        approximate=True,
    ),
)

#: the published order, with stricter rules in the place of its ``prefix``
CLAUSE_RULES: tuple[Rule, ...] = (
    tuple(
        rule
        for published in RULES
        for rule in (_PREFIX_RULES if published.name == "prefix" else (published,))
    )
    + _ENGLISH_RULES
)


def parse_clauses(text: str) -> Budget:
    """The ceiling of the first clause that names one; a lower bound alone is none."""
    refused = NO_BUDGET
    for clause in clauses_of(text):
        budget = ten_thousands(clause) or first_hit(CLAUSE_RULES, clause) or spoken(clause)
        if budget is None:
            continue
        if budget.ceiling is not None:
            return budget
        refused = budget
    return refused


def clauses_of(text: str) -> Iterator[str]:
    """Clauses of an instruction; a clause that is only a prefix word joins the next one."""
    carried = ""
    for part in _CLAUSE_END.split(without_endless_numbers(_THOUSANDS.sub("", text))):
        clause = carried + part.strip()
        carried = ""
        if re.fullmatch(PREFIX, clause):
            carried = clause
        elif clause:
            yield clause
