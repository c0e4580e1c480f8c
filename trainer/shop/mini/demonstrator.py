"""The demonstrator: a shopper with habits, who shows how texts and deeds go together.

It reads what a policy reads (task words and pages), never the private goal, and acts in the same
words. Habits are drawn once an episode, at the rates of ``habits.py``. With every habit it wins
each task that ``tasks.py`` keeps. Used by the warm start, the task generator and the analyst;
never by training, evaluation or the gate.
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
        """On a product page: look closer, leave, choose options, leave after all, or buy."""
        if self.turns >= self.last_turn:
            return ["buy"]
        may_leave = self.turns < self.last_turn - 2  # time to open and buy something else
        for decide in (self._judge_material, self._judge_options, self._select, self._judge_price):
            words = decide(state)
            if words and (may_leave or words != ["back"]):
                return words
        return ["buy"]

    def _judge_material(self, state: State) -> Words | None:
        if not self.need.material or (self.need.brand and not self._has("brand")):
            return None
        material = _shown_material(state)
        if material is None:
            return ["details"] if self._has("details") else None
        return ["back"] if material != self.need.material else None

    def _judge_options(self, state: State) -> Words | None:
        lacking = any(
            wanted and wanted not in state["available_options"][axis]
            for axis, wanted in self._wanted_options()
        )
        return ["back"] if lacking and self._has("missing_option") else None

    def _select(self, state: State) -> Words | None:
        for axis, wanted in self._wanted_options():
            open_choice = wanted and state["selected_options"].get(axis) != wanted
            if open_choice and wanted in state["available_options"][axis] and self._has(axis):
                return ["select", str(wanted)]
        return None

    def _judge_price(self, state: State) -> Words | None:
        price = state.get("selected_price")
        if price is None:
            price = _lowest_price(state["product"])
        return ["back"] if price > self.need.budget and self._has("budget") else None

    def _wanted_options(self) -> tuple[tuple[str, str | None], ...]:
        return ("colour", self.need.colour), ("size", self.need.size)


def _lowest_price(row: State) -> float:
    return float(str(row["price"]).split()[0])


def _shown_material(state: State) -> str | None:
    shown = (*state["product"]["key_attributes"], *state.get("hidden_attributes", ()))
    return next((word for word in shown if word in _MATERIALS), None)
