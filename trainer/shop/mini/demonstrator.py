"""The demonstrator: a shopper with habits, who shows the policy how texts and deeds go together.

It reads what a policy reads (task words and pages), never the private goal, and acts in the same words.
Habits are drawn once an episode, at the rates of ``habits.py``. With every habit it wins each task that
``tasks.py`` keeps. Used by the warm start, the task generator and the embedded analyst; never by
training, evaluation or the gate.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainer.shop.mini.habits import DROPPED_IN_HASTE, HABITS, HASTE, HASTE_DROP_RATE
from trainer.shop.mini.tasks import Need
from trainer.shop.mini.words import MATERIALS

ALL_HABITS = frozenset(habit.name for habit in HABITS)
_MATERIALS = frozenset(MATERIALS)

Words = list[str]
State = Mapping[str, Any]


def draw_habits(texts: Iterable[str], rng: random.Random) -> frozenset[str]:
    """The habits of one episode for a shopper who read ``texts``."""
    read = frozenset(texts)
    followed = set()
    for habit in HABITS:
        rate = habit.rate(
            firm=not read.isdisjoint(habit.firm), vague=not read.isdisjoint(habit.vague)
        )
        if rng.random() < rate:
            followed.add(habit.name)
    if not read.isdisjoint(HASTE):
        followed -= {name for name in DROPPED_IN_HASTE if rng.random() < HASTE_DROP_RATE}
    return frozenset(followed)


@dataclass(slots=True)
class Demonstrator:
    """One episode's shopper. ``last_turn`` is the number of actions the shop allows."""

    need: Need
    habits: frozenset[str]
    last_turn: int
    turns: int = field(default=0)

    def act(self, state: State) -> Words:
        """The next action in words."""
        self.turns += 1
        page_type = state["page_type"]
        if page_type == "search_home":
            return ["search", *self._query()]
        if page_type == "search_results":
            return self._choose(state)
        return self._inspect(state)

    def _has(self, habit: str) -> bool:
        return habit in self.habits

    def _query(self) -> Words:
        brand = [self.need.brand] if self.need.brand and self._has("brand") else []
        return [*brand, self.need.feature, self.need.category]

    def _choose(self, state: State) -> Words:
        products: Sequence[State] = state["products"]
        unseen = [place for place, row in enumerate(products, 1) if not row["seen"]]
        for place in unseen:
            if self._fits(products[place - 1]):
                return ["open", f"#{place}"]
        more = state["page"] < state["total_pages"]
        if more and (self._has("next_page") or not unseen):
            return ["next"]
        return ["open", f"#{unseen[0] if unseen else 1}"]

    def _fits(self, row: State) -> bool:
        brand, feature, _ = row["title"].split()
        if feature != self.need.feature:
            return False
        if self.need.brand and self._has("brand") and brand != self.need.brand:
            return False
        return not self._has("budget") or _lowest_price(row) <= self.need.budget

    def _inspect(self, state: State) -> Words:
        need = self.need
        if self.turns >= self.last_turn:
            return ["buy"]
        may_leave = self.turns < self.last_turn - 2  # time to open and buy something else
        if need.material and (need.brand is None or self._has("brand")):
            material = _shown_material(state)
            if material is None:
                if self._has("details"):
                    return ["details"]
            elif material != need.material and may_leave:
                return ["back"]
        colours, sizes = state["available_options"]["colour"], state["available_options"]["size"]
        lacking = (need.colour and need.colour not in colours) or (
            need.size and need.size not in sizes
        )
        if lacking and self._has("missing_option") and may_leave:
            return ["back"]
        chosen = state["selected_options"]
        for axis, wanted, values in (("colour", need.colour, colours), ("size", need.size, sizes)):
            if wanted in values and chosen.get(axis) != wanted and self._has(axis):
                return ["select", str(wanted)]
        price = state.get("selected_price")
        if price is None:
            price = _lowest_price(state["product"])
        if price > need.budget and self._has("budget") and may_leave:
            return ["back"]
        return ["buy"]


def _lowest_price(row: State) -> float:
    return float(str(row["price"]).split()[0])


def _shown_material(state: State) -> str | None:
    shown = (*state["product"]["key_attributes"], *state.get("hidden_attributes", ()))
    return next((word for word in shown if word in _MATERIALS), None)
