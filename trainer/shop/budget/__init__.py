"""Price ceilings hidden in instructions: the published parser and ours, chosen by name."""

from __future__ import annotations

from collections.abc import Callable

from trainer.errors import InputError
from trainer.shop.budget.clauses import parse_clauses
from trainer.shop.budget.published import parse_published
from trainer.shop.budget.rules import NO_BUDGET, Budget

__all__ = ["NO_BUDGET", "Budget", "BudgetParser", "budget_parser"]

BudgetParser = Callable[[str], Budget]

_PARSERS: dict[str, BudgetParser] = {
    "instruction-budget-v1": parse_published,
    "clause-budget-v1": parse_clauses,
    "none": lambda text: NO_BUDGET,  # worlds whose tasks store every ceiling
}


def budget_parser(name: str) -> BudgetParser:
    """The parser called ``name``. Raises InputError for an unknown one."""
    try:
        return _PARSERS[name]
    except KeyError:
        raise InputError(
            "unknown budget parser",
            field="budget_parser",
            value=name,
            remedy=f"Known parsers: {', '.join(_PARSERS)}",
        ) from None
