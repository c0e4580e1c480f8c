"""The structured page of an observation, as the rendered shop page needs it. Pure.

The state comes from a trace file, so every field is taken as text or left out: a hostile or broken
trace is shown, never a fault of the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from intraskill_web.episodes.shown import shown

FIRST_HITS = 4
MAX_HITS = 50
MAX_VALUES = 100
MOST = 2_000  # characters of a field
MINI_PRICE = "${}"  # as the persona of the built-in shop says it


@dataclass(frozen=True, slots=True)
class Hit:
    """One product of a result page."""

    rank: str
    title: str
    brand: str
    price: str
    attributes: str
    asin: str
    opened: bool = False  # the next turn opens it


@dataclass(frozen=True, slots=True)
class Axis:
    """One option axis: (value, whether it is chosen)."""

    name: str
    values: list[tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class ShopPage:
    """What a page shows. ``kind`` is the page type; unknown types have no fields."""

    kind: str
    query: str = ""
    place: tuple[str, str, str] = ("", "", "")
    hits: list[Hit] = field(default_factory=list)
    more: list[Hit] = field(default_factory=list)
    product: Hit | None = None
    category: str = ""
    hidden: str = ""
    axes: list[Axis] = field(default_factory=list)
    missing: str = ""


def price_format(trace: Mapping[str, Any]) -> str:
    """How prices of the shop that a trace was played in are written.

    Catalogues do not name their currency.
    """
    environment = mapping(mapping(trace.get("provenance")).get("environment"))
    if environment.get("profile") == "mini":
        return MINI_PRICE
    return f"{{}} {settings.INTRASKILL_CURRENCY}"


def shop_page(state: Mapping[str, Any], prices: str, opened: str = "") -> ShopPage:
    """The page of ``state`` with prices by the format ``prices``; ``opened`` is the id of the
    product that the next turn opens.
    """
    kind = text(state.get("page_type"))
    if kind == "search_results":
        hits = [_hit(p, prices, opened) for p in sequence(state.get("products"))[:MAX_HITS]]
        place = tuple(text(state.get(k)) for k in ("page", "total_pages", "total_results"))
        return ShopPage(
            kind,
            query=text(state.get("search_text")),
            place=(place[0], place[1], place[2]),
            hits=hits[:FIRST_HITS],
            more=hits[FIRST_HITS:],
        )
    if kind == "product_detail":
        product = mapping(state.get("product"))
        chosen = mapping(state.get("selected_options"))
        price = state.get("selected_price")
        shown = _hit(product if price is None else {**product, "price": price}, prices)
        return ShopPage(
            kind,
            product=shown,
            category=text(product.get("category")),
            hidden="; ".join(text(v) for v in sequence(state.get("hidden_attributes"))),
            axes=[
                Axis(
                    text(name),
                    [(text(v), chosen.get(name) == v) for v in sequence(values)[:MAX_VALUES]],
                )
                for name, values in mapping(state.get("available_options")).items()
            ],
            missing=", ".join(text(v) for v in sequence(state.get("missing_option_axes"))),
        )
    return ShopPage(kind)


def _hit(value: object, prices: str, opened: str = "") -> Hit:
    product = mapping(value)
    return Hit(
        rank=text(product.get("rank")),
        title=text(product.get("title")),
        brand=text(product.get("brand")),
        price=priced(product.get("price"), prices),
        attributes="; ".join(text(a) for a in sequence(product.get("key_attributes"))),
        asin=text(product.get("asin")),
        opened=bool(opened) and text(product.get("asin")) == opened,
    )


def priced(value: object, prices: str) -> str:
    """A price of the shop by the format ``prices``; nothing for None."""
    amount = text(value)
    return prices.format(amount) if amount else ""


def text(value: object) -> str:
    """A value as text; nothing for None."""
    return shown(value if value is None or isinstance(value, str) else str(value), MOST)


def mapping(value: object) -> Mapping[str, Any]:
    """``value`` when it is an object, else an empty one."""
    # the first question is the cheap one, and the answer for all that was read from JSON
    return value if type(value) is dict or isinstance(value, Mapping) else {}


def sequence(value: object) -> list[Any]:
    """``value`` as a list when it is one, else nothing."""
    return list(value) if isinstance(value, list | tuple) else []


def number(value: object) -> float | None:
    """``value`` when it is a number that a float holds, and not a boolean."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:  # JSON has no limit to the digits of a whole number
        return None
