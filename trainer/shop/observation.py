"""The structured page an agent sees (environment.md §2.6).

Pages are built from what the shop shows, never from the task: no function here takes a goal, so
none can leak one. Summaries are shared between states; treat a state as read-only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trainer.shop.profiles import ShopProfile
from trainer.shop.types import PageType, Product

PRIVATE_KEYS = frozenset({"goal", "reward", "reward_detail", "target_asin", "answer"})


def listing_price(product: Product) -> str:
    """The listing's price text, numbers as the data writes them: ``199`` or ``99 to 299``."""
    return " to ".join(str(price) for price in product.pricing[:2])


def format_price(price: float) -> str:
    """A price without a needless decimal."""
    return str(int(price)) if float(price).is_integer() else str(price)


def summary(product: Product, profile: ShopProfile) -> dict[str, Any]:
    """A product as result lists and its own page show it."""
    return {
        "asin": product.asin,
        "title": product.title,
        "brand": product.brand,
        "category": product.category,
        "price": listing_price(product),
        "key_attributes": list(product.attributes[: profile.key_attributes_shown]),
    }


def base_state(
    profile: ShopProfile,
    page_type: PageType,
    actions: Sequence[str],
    last_action: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """What every page has."""
    state: dict[str, Any] = {
        "observation_version": profile.observation_version,
        "page_type": page_type,
        "search_available": page_type == "search_home",
        "actions": actions,
    }
    if last_action is not None:
        state["last_action"] = last_action
    if profile.listed_actions is not None and len(actions) > profile.listed_actions:
        state["actions_abridged"] = True
    return state


def results_fields(
    *,
    query: str,
    normalised: str,
    page: int,
    pages: int,
    total: int,
    first: int,
    products: Iterable[dict[str, Any]],
) -> dict[str, Any]:
    """Fields of a result page; ``first`` is the rank of its first product, from 1."""
    listed = [{**product, "rank": rank} for rank, product in enumerate(products, first)]
    return {
        "search_text": query,
        "normalized_search_text": normalised,
        "page": page,
        "total_pages": pages,
        "total_results": total,
        "rank_start": first if listed else 0,
        "rank_end": first + len(listed) - 1 if listed else 0,
        "products": listed,
    }


def detail_fields(
    *,
    product: Mapping[str, Any],
    options: Mapping[str, Sequence[str]],
    selected: Mapping[str, str],
    missing: Sequence[str],
    price: float | None,
    hidden_attributes: Sequence[str] | None,
) -> dict[str, Any]:
    """Fields of a product page; ``hidden_attributes`` is None until they were asked for."""
    fields: dict[str, Any] = {
        "product": product,
        "selected_options": dict(selected),
        "available_options": options,
        "missing_option_axes": list(missing),
        "options_complete": not missing,
    }
    if price is not None:
        fields["selected_price"] = price
    if hidden_attributes is not None:
        fields["hidden_attributes"] = list(hidden_attributes)
    return fields
