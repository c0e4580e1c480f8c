"""What the agent of a trace did not do, and on which turn it should have been done.

A violation need not have caused anything; trials tell (``trials.py``). Turns count the steps of the
trace from 0; the turn of a violation is the first one whose action would have been another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.analyst.rules.goal import Goal, State
from trainer.analyst.rules.mechanisms import (
    BRAND_IN_QUERY,
    FINISH,
    LEAVE_MISSING_OPTION,
    LEAVE_WRONG,
    OPEN_FITTING,
    REVEAL_HIDDEN,
    TURN_PAGE,
    WITHIN_BUDGET,
)
from trainer.shop.action_text import read_action
from trainer.shop.navigation import BUY, NEXT
from trainer.shop.types import Action


@dataclass(frozen=True, slots=True)
class Turn:
    """A step of a trace: the state before it, and its action; None after a protocol error."""

    state: State
    action: Action | None


@dataclass(frozen=True, slots=True, order=True)
class Violation:
    """A mechanism that was neglected, and since when."""

    turn: int
    mechanism: str


def turns_of(trace: Mapping[str, Any]) -> list[Turn]:
    """The trace as states and actions."""
    turns = []
    state: State = trace["reset"]["observation_state"]
    for step in trace["steps"]:
        action = read_action(step["action"]) if step["action"] else None
        turns.append(Turn(state, action if isinstance(action, Action) else None))
        if step["environment"] is not None:
            state = step["environment"]["observation_state"]
    return turns


def violations_of(turns: Sequence[Turn], goal: Goal, *, bought: bool) -> list[Violation]:
    """Every violation once, at its first turn, in order."""
    found: dict[str, int] = {}
    for violation in sorted(_all(turns, goal, bought=bought)):
        found.setdefault(violation.mechanism, violation.turn)
    return sorted(Violation(turn, name) for name, turn in found.items())


def _all(turns: Sequence[Turn], goal: Goal, *, bought: bool) -> Iterator[Violation]:
    for number, turn in enumerate(turns):
        if turn.action is None:
            continue
        if turn.action.name == "search" and turn.state["page_type"] == "search_home":
            brand = goal.brand
            if brand and brand.casefold() not in turn.action.argument.casefold():
                yield Violation(number, BRAND_IN_QUERY.name)
        elif turn.state["page_type"] == "search_results":
            yield from _choice(number, turn, goal)
    if bought:
        yield from _purchase(_last_visit(turns), goal)
    else:
        yield Violation(max(0, len(turns) - 1), FINISH.name)


def _choice(number: int, turn: Turn, goal: Goal) -> Iterator[Violation]:
    """What was clicked on a page of results."""
    rows = {row["asin"]: row for row in turn.state["products"]}
    fitting = {asin for asin, row in rows.items() if not row.get("seen") and goal.fits_listing(row)}
    clicked = turn.action.argument if turn.action else ""
    if clicked in fitting:
        return
    opened = rows.get(clicked)
    if opened is not None and goal.fits_listing(opened, at_any_price=True):
        if not goal.affords(opened):
            yield Violation(number, WITHIN_BUDGET.name)
    elif fitting:
        yield Violation(number, OPEN_FITTING.name)
    elif opened is not None and NEXT in turn.state["actions"]:
        yield Violation(number, TURN_PAGE.name)


def _last_visit(turns: Sequence[Turn]) -> list[tuple[int, Turn]]:
    """The turns on the page of the bought product, from its opening to the purchase."""
    visit: list[tuple[int, Turn]] = []
    for number, turn in enumerate(turns):
        if turn.state["page_type"] != "product_detail":
            visit = []
        else:
            visit.append((number, turn))
            if turn.action == Action("click", BUY):
                return visit
    raise ValueError("the trace ends in a purchase that none of its turns made")


def _purchase(visit: Sequence[tuple[int, Turn]], goal: Goal) -> Iterator[Violation]:
    """What the bought product's page showed, or would have shown."""
    first, last = visit[0][0], visit[-1][1].state
    if goal.unknown(last):
        yield Violation(first, REVEAL_HIDDEN.name)
    for number, turn in visit:
        if goal.wrong(turn.state):
            yield Violation(number, LEAVE_WRONG.name)
        if not goal.within_budget(turn.state):
            yield Violation(number, WITHIN_BUDGET.name)
    if goal.lacking(last):
        yield Violation(first, LEAVE_MISSING_OPTION.name)
    for axis in goal.unselected(last):
        yield Violation(first, f"select_option:{axis}")
