"""What a trace gives away: the private goal, the purchase, and the products that were looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trainer.shop.catalogue import Catalogue

Trace = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GoldFacts:
    """Facts of one task and one episode. ``seen_*`` are those of product pages in the trace (and of
    the purchase); ``gold_axes`` maps a wanted option value to the label of its axis, if known."""

    gold_titles: tuple[str, ...]
    seen_titles: tuple[str, ...]
    gold_brands: tuple[str, ...]
    seen_brands: tuple[str, ...]
    gold_options: tuple[str, ...]
    gold_axes: Mapping[str, str]
    gold_attributes: tuple[str, ...]
    identifiers: tuple[str, ...]
    prices: tuple[float, ...]

    @property
    def titles(self) -> tuple[str, ...]:
        return _unique((*self.gold_titles, *self.seen_titles))


def gold_facts(trace: Trace, catalogue: Catalogue | None = None) -> GoldFacts:
    """The facts of a finished trace; with a catalogue also the brand and axes of the target."""
    final = trace["final"]
    goal, purchase = final.get("goal") or {}, final.get("purchase") or {}
    pages = list(_product_pages(trace))
    target = catalogue.products.get(str(goal.get("asin"))) if catalogue else None
    options = tuple(map(str, goal.get("goal_options") or ()))
    prices = (goal.get("price_upper"), purchase.get("price"))
    return GoldFacts(
        gold_titles=_unique(filter(None, [goal.get("name")])),
        seen_titles=_unique(filter(None, [purchase.get("name"), *(p["title"] for p in pages)])),
        gold_brands=_unique([target.brand] if target and target.brand else []),
        seen_brands=_unique(p["brand"] for p in pages if p.get("brand")),
        gold_options=options,
        gold_axes={
            value: axis
            for axis, values in (target.options if target else {}).items()
            for value in values
            if value in options
        },
        gold_attributes=tuple(filter(str.strip, map(str, goal.get("attributes") or ()))),
        identifiers=_unique(
            str(value)
            for value in (goal.get("asin"), purchase.get("asin"), *(p["asin"] for p in pages))
            if value
        ),
        prices=tuple(float(price) for price in prices if isinstance(price, int | float)),
    )


def _product_pages(trace: Trace) -> Iterable[Mapping[str, Any]]:
    states = [trace["reset"]["observation_state"]]
    states += [
        step["environment"]["observation_state"]
        for step in trace["steps"]
        if step.get("environment") is not None
    ]
    return (state["product"] for state in states if state.get("page_type") == "product_detail")


def _unique(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))
