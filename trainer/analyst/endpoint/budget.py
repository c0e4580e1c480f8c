"""What a round may spend, and what it has spent. Safe for several threads.

A call is let through only if even its longest possible answer keeps the round within its budget:
prompt tokens are bounded by the characters of the request. The last tenth is kept for the compiler.
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
        self._lock = threading.Lock()
        self._reserved = Usage()
        self.spent = Usage()
        self.cost = 0.0

    def add(self, usage: Usage) -> None:
        """Count a call that was answered, now or in an earlier run of this round."""
        with self._lock:
            self.spent = _plus(self.spent, usage)
            self.cost += cost_of(usage, self._settings.prices)

    @contextmanager
    def reserve(self, largest: Usage, *, for_session: bool) -> Iterator[None]:
        """Hold ``largest`` back while a call is under way. Raises BudgetSpent."""
        with self._lock:
            self._check(_plus(self._reserved, largest), SESSION_SHARE if for_session else 1.0)
            self._reserved = _plus(self._reserved, largest)
        try:
            yield
        finally:
            with self._lock:
                self._reserved = _plus(self._reserved, largest, sign=-1)

    def _check(self, ahead: Usage, share: float) -> None:
        settings = self._settings
        total = _plus(self.spent, ahead)
        tokens = total.prompt + total.completion
        if settings.token_budget is not None and tokens > settings.token_budget * share:
            used = self.spent.prompt + self.spent.completion
            raise BudgetSpent(
                f"{used} of {settings.token_budget} tokens are spent and the next call could "
                f"exceed {share:.0%} of them: raise analyst.endpoint.token_budget to go on"
            )
        cost = self.cost + cost_of(ahead, settings.prices)
        if settings.cost_budget is not None and cost > settings.cost_budget * share:
            raise BudgetSpent(
                f"{self.cost:.4f} of {settings.cost_budget} are spent and the next call could "
                f"exceed {share:.0%} of it: raise analyst.endpoint.cost_budget to go on"
            )


def _plus(left: Usage, right: Usage, *, sign: int = 1) -> Usage:
    return Usage(
        prompt=left.prompt + sign * right.prompt,
        completion=left.completion + sign * right.completion,
        cached=left.cached + sign * right.cached,
        reasoning=left.reasoning + sign * right.reasoning,
    )
