"""Rules that find a price ceiling in a text, and their vocabulary (environment.md §4.7)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from trainer.shop.budget.numerals import NUMERALS, read_numeral


@dataclass(frozen=True, slots=True)
class Budget:
    """A ceiling in currency units, or none, and the rule that decided (empty: no rule did)."""

    ceiling: float | None
    rule: str


NO_BUDGET = Budget(None, "")

#: what "about" adds to an amount
TOLERANCE = 1.10

PREFIX = "(?:预算|预期价格|价格|价钱|价位|售价|单价|花费|费用|总价)(?:金额)?"
CURRENCY = "(?:元|块钱|块)"
WITHIN = "(?:之间|以内|以下|之内)"
APPROXIMATELY = "(?:左右|上下浮动|上下|大约|出头)"
# 低于 is not meant inside 不低于, which is a lower bound below.
NOT_MORE = (
    "(?:不得超过|不能超过|不要超过|不能高于|不要高于|不超过|不高于|不高过|别超过|别超|不超|(?<!不)低于|小于"
    "|不到|最高[为是]?|上限[为是]?|只能给到)"
)
AT_LEAST = "(?:不低于|至少|(?<!不要)(?<!不能)(?<!不)(?<!别)(?:超过|高于))"
RANGE_LEAD = "(?:控制)?(?:在|为|是|要在|大概|约|差不多)?"

_SCALES = {"万": 1e4, "千": 1e3, "k": 1e3, "K": 1e3}


def number(name: str = "value") -> str:
    """A number with an optional scale, captured as ``name`` and ``name_scale``."""
    return rf"(?P<{name}>\d+(?:\.\d+)?|[{NUMERALS}]+)\s*(?P<{name}_scale>[万千kK])?"


RANGE = rf"{number('low')}\s*{CURRENCY}?\s*[-~～—至到和]\s*{number()}\s*"


#: no price is written with this many digits
_ENDLESS = re.compile(rf"[\d{NUMERALS}]{{19,}}")


def without_endless_numbers(text: str) -> str:
    """The text to match. Patterns would take very long to find out that such a run is no price."""
    return _ENDLESS.sub("#", text)


def amount(text: str, scale: str | None) -> float:
    """Digits or a numeral, times its scale."""
    value = float(read_numeral(text)) if text[0] in NUMERALS else float(text)
    return value * _SCALES.get(scale or "", 1.0)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; the pattern captures ``value`` and, for ranges, ``low``.

    Ten percent are added always (``approximate``) or when one of the groups ``approximate_if`` took
    part. Amounts below ``least`` and zero do not count. ``refuses``: a hit means "no ceiling".
    """

    name: str
    pattern: re.Pattern[str]
    approximate: bool = False
    approximate_if: tuple[str, ...] = ()
    least: float = 0.0
    refuses: bool = False

    def read(self, text: str) -> Budget | None:
        """The budget this rule finds, or None when it does not apply."""
        found = self.pattern.search(text)
        if found is None:
            return None
        if self.refuses:
            return Budget(None, self.name)
        groups = found.groupdict()
        value = amount(groups["value"], groups.get("value_scale"))
        if groups.get("low") and not 0 < amount(groups["low"], groups["low_scale"]) <= value:
            return None
        if value <= 0 or value < self.least:
            return None
        loose = self.approximate or any(groups[name] for name in self.approximate_if)
        return Budget(round(value * TOLERANCE, 8) if loose else value, self.name)


def first_hit(rules: Iterable[Rule], text: str) -> Budget | None:
    """The answer of the first rule that applies."""
    return next((budget for rule in rules if (budget := rule.read(text)) is not None), None)
