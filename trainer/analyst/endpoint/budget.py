"""What a round may spend, and what it has spent. Safe for several threads.

A call is let through only if even its longest possible answer keeps the round within its budget:
prompt tokens are bounded by the bytes of the request. The last tenth is kept for the compiler.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from trainer.analyst.endpoint.wire import Usage
from trainer.analyst.maker import AnalysisEnded
from trainer.analyst.settings import ChatSettings, PriceSettings

SESSION_SHARE = 0.9
MILLION = 1_000_000


class BudgetSpent(AnalysisEnded):
    """The next call could exceed the budget."""


def cost_of(usage: Usage, prices: PriceSettings) -> float:
    """What a call cost; cached prompt tokens have a price of their own."""
    fresh = usage.prompt - usage.cached
    return (
        fresh * prices.input + usage.cached * prices.cached_input + usage.completion * prices.output
    ) / MILLION


class Budget:
    """Tokens and cost of one round."""

    def __init__(self, settings: ChatSettings) -> None:
        self._settings = settings
        self._changed = threading.Condition()
        self._reserved = Usage()
        self.spent = Usage()
        self.cost = 0.0

    def add(self, usage: Usage) -> None:
        """Count a call that was answered, now or in an earlier run of this round."""
        with self._changed:
            self.spent = _plus(self.spent, usage)
            self.cost += cost_of(usage, self._settings.prices)

    @contextmanager
    def reserve(self, largest: Usage, *, for_session: bool) -> Iterator[None]:
        """Hold ``largest`` back while a call is under way; waits for other calls to return what
        they did not need. Raises BudgetSpent when not even that would be enough."""
        share = SESSION_SHARE if for_session else 1.0
        with self._changed:
            self._require(largest, share)
            while self._excess(_plus(self._reserved, largest), share):
                self._changed.wait()
                self._require(largest, share)
            self._reserved = _plus(self._reserved, largest)
        try:
            yield
        finally:
            with self._changed:
                self._reserved = _plus(self._reserved, largest, sign=-1)
                self._changed.notify_all()

    def _require(self, largest: Usage, share: float) -> None:
        excess = self._excess(largest, share)
        if excess:
            raise BudgetSpent(f"{excess}: raise analyst.endpoint.{{token,cost}}_budget to go on")

    def _excess(self, ahead: Usage, share: float) -> str | None:
        """What would exceed the budget if all of ``ahead`` were used, in words."""
        settings = self._settings
        total = _plus(self.spent, ahead)
        tokens = settings.token_budget
        if tokens is not None and total.prompt + total.completion > tokens * share:
            spent = self.spent.prompt + self.spent.completion
            return f"{spent} of {tokens} tokens are spent, the next call could exceed {share:.0%}"
        money = settings.cost_budget
        if money is not None and self.cost + cost_of(ahead, settings.prices) > money * share:
            unit = settings.prices.currency
            return (
                f"{self.cost:.4f} of {money} {unit} is spent, "
                f"the next call could exceed {share:.0%}"
            )
        return None


def _plus(left: Usage, right: Usage, *, sign: int = 1) -> Usage:
    return Usage(
        prompt=left.prompt + sign * right.prompt,
        completion=left.completion + sign * right.completion,
        cached=left.cached + sign * right.cached,
        reasoning=left.reasoning + sign * right.reasoning,
    )
