"""A shopper that does everything right except what it was told to neglect.

It finishes the trials of the analyst: from any page, with the goal in view, in as few turns as the
remaining mechanisms allow.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from trainer.analyst.rules.goal import Goal, State
from trainer.analyst.rules.mechanisms import (
    BRAND_IN_QUERY,
    LEAVE_MISSING_OPTION,
    LEAVE_WRONG,
    OPEN_FITTING,
    REVEAL_HIDDEN,
    TURN_PAGE,
    WITHIN_BUDGET,
)
from trainer.shop.navigation import ATTRIBUTES, BACK_TO_SEARCH, BUY, NEXT, PREVIOUS
from trainer.shop.types import Action

#: turns that leaving a product still costs: back, open, buy
TURNS_TO_CHANGE = 3


@dataclass(frozen=True, slots=True)
class Shopper:
    """``neglected`` are names of mechanisms that it does not follow."""

    goal: Goal
    neglected: Set[str]

    def act(self, state: State, turns_left: int) -> Action:
        """The next action on a page with ``turns_left`` actions to go, this one included."""
        if state["page_type"] == "search_home":
            return Action("search", self.query())
        if state["page_type"] == "search_results":
            return Action("click", self._choose(state))
        return Action("click", self._inspect(state, turns_left))

    def _does(self, mechanism: str) -> bool:
        return mechanism not in self.neglected

    def query(self) -> str:
        """Everything that can be searched for."""
        named = self.goal.brand and self._does(BRAND_IN_QUERY.name)
        brand = [self.goal.brand] if self.goal.brand and named else []
        return " ".join([*brand, *self.goal.visible, self.goal.kind])

    def _choose(self, state: State) -> str:
        unseen = [row for row in state["products"] if not row.get("seen")]
        any_price = not self._does(WITHIN_BUDGET.name)
        fitting = [row for row in unseen if self.goal.fits_listing(row, at_any_price=any_price)]
        if fitting and self._does(OPEN_FITTING.name):
            return str(fitting[0]["asin"])
        more = NEXT in state["actions"]
        if more and not fitting and (self._does(TURN_PAGE.name) or not unseen):
            return NEXT
        return str(unseen[0]["asin"]) if unseen else BACK_TO_SEARCH

    def _inspect(self, state: State, turns_left: int) -> str:
        goal = self.goal
        if turns_left <= 1:
            return BUY
        if self._does(REVEAL_HIDDEN.name) and goal.unknown(state):
            return ATTRIBUTES
        leaves = (
            (self._does(LEAVE_WRONG.name) and goal.wrong(state))
            or (self._does(LEAVE_MISSING_OPTION.name) and goal.lacking(state))
            or (self._does(WITHIN_BUDGET.name) and not goal.within_budget(state))
        )
        if leaves and turns_left > TURNS_TO_CHANGE:
            return PREVIOUS if PREVIOUS in state["actions"] else BACK_TO_SEARCH
        for axis in goal.unselected(state):
            if self._does(f"select_option:{axis}"):
                return f"{axis}={goal.options[axis]}"
        return BUY
