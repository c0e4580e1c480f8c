"""The private goal in terms of what pages show. Privileged: nothing of it may leave the analyst."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainer.shop.catalogue import Catalogue
from trainer.shop.matching import matches
from trainer.shop.navigation import ATTRIBUTES
from trainer.shop.terms import category_nodes
from trainer.shop.types import Task

State = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Goal:
    """What a task wants. ``visible`` stands in titles, ``hidden`` may show only on request;
    ``options`` maps an axis to its wanted value."""

    kind: str
    brand: str | None
    visible: tuple[str, ...]
    hidden: tuple[str, ...]
    options: Mapping[str, str]
    ceiling: float | None

    def fits_listing(self, row: State, *, at_any_price: bool = False) -> bool:
        """Whether everything that a result list shows of a product is as wanted."""
        title = str(row["title"]).casefold()
        if self.brand and str(row["brand"]).casefold() != self.brand.casefold():
            return False
        if not all(word.casefold() in title for word in self.visible):
            return False
        return at_any_price or self.affords(row)

    def affords(self, row: State) -> bool:
        """Whether the cheapest variant is within the budget."""
        return self.ceiling is None or lowest_price(row) <= self.ceiling

    def within_budget(self, state: State) -> bool:
        """Whether the price on a product page is: the selected variant's, else the lowest."""
        price = state.get("selected_price")
        shown = lowest_price(state["product"]) if price is None else float(price)
        return self.ceiling is None or shown <= self.ceiling

    def unknown(self, state: State) -> bool:
        """Whether a wanted property does not show yet and could be asked for."""
        return ATTRIBUTES in state["actions"] and not self._shows_hidden(state)

    def wrong(self, state: State) -> bool:
        """Whether all there is to show has been shown, and a wanted property is not among it."""
        return ATTRIBUTES not in state["actions"] and not self._shows_hidden(state)

    def _shows_hidden(self, state: State) -> bool:
        shown = (*state["product"]["key_attributes"], *state.get("hidden_attributes", ()))
        title = str(state["product"]["title"]).casefold()
        return all(
            wanted.casefold() in title or any(matches(text, wanted) for text in shown)
            for wanted in self.hidden
        )

    def lacking(self, state: State) -> list[str]:
        """Axes whose wanted value the product does not offer."""
        offered = state["available_options"]
        return [axis for axis, value in self.options.items() if value not in offered.get(axis, ())]

    def unselected(self, state: State) -> list[str]:
        """Axes whose wanted value is offered and not selected."""
        chosen, lacking = state["selected_options"], self.lacking(state)
        return [
            axis
            for axis, value in self.options.items()
            if axis not in lacking and chosen.get(axis) != value
        ]


def goal_of(task: Task, catalogue: Catalogue) -> Goal:
    """The goal of a task, sorted by where its target shows what is wanted."""
    target = catalogue.products[task.asin]
    title = target.title.casefold()
    brand = next((a for a in task.attributes if a.casefold() == target.brand.casefold()), None)
    rest = [attribute for attribute in task.attributes if attribute != brand]
    options: dict[str, str] = {}
    for wanted in task.goal_options:
        for axis, values in target.options.items():
            value = next((value for value in values if matches(value, wanted)), None)
            if value is not None:
                options.setdefault(axis, value)
                break
    return Goal(
        kind=category_nodes(task.category)[-1],
        brand=brand,
        visible=tuple(a for a in rest if a.casefold() in title),
        hidden=tuple(a for a in rest if a.casefold() not in title),
        options=options,
        ceiling=task.price_upper,
    )


def lowest_price(row: State) -> float:
    """The lowest price of a listing, ``12 to 18``; infinite where none is stated."""
    text = str(row["price"]).split()
    return float(text[0]) if text else float("inf")
