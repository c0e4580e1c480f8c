"""The score of a purchase (environment.md §4.1–4.3, §4.6, §4.8).

A pure function of the bought product, the selection, the goal and the resolved price. Any product
that fits can succeed: the target's id is only a diagnostic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from trainer.shop.matching import matches
from trainer.shop.price import PriceResolution, normalise_option
from trainer.shop.profiles import ShopProfile
from trainer.shop.terms import TermExtractor, category_nodes
from trainer.shop.types import Product, Task, TerminationReason


def score_purchase(
    profile: ShopProfile,
    extract: TermExtractor,
    *,
    product: Product,
    selected: Mapping[str, str],
    task: Task,
    resolution: PriceResolution,
) -> dict[str, Any]:
    """``reward_detail`` of a purchase."""
    kind = type_score(extract, product, task)
    attributes = matched_attributes(product, task.attributes)
    options = matched_options(selected.values(), task.goal_options)
    r_att = _share(attributes, len(task.attributes))
    r_option = _share(options, len(task.goal_options))
    r_price = price_score(resolution, task.price_upper)
    r_type = kind["r_type"]
    wanted = len(task.attributes) + len(task.goal_options) + 1
    detail = {
        "reward_version": profile.reward_version,
        "termination_reason": "purchase",
        **kind,
        "num_attr_matches": attributes,
        "num_option_matches": options,
        "r_att": r_att,
        "r_option": r_option,
        "r_price": r_price,
        "r_loose": r_type * (attributes + options + r_price) / wanted,
        "r_strict": r_type * r_att * r_option * r_price,
        "r_success": int(r_type == r_att == r_option == r_price == 1),
        "target_asin_match": product.asin == task.asin,
        "price_verifiable": resolution.verified,
        "price_upper": task.price_upper,
        "price_resolution": resolution.record(profile.variant_price_version),
    }
    if profile.strict_option_diagnostics:
        detail["exact_option_match"] = options_match_exactly(selected.values(), task.goal_options)
    return detail


def score_nothing(profile: ShopProfile, reason: TerminationReason) -> dict[str, Any]:
    """``reward_detail`` of an episode that ended without a purchase."""
    return {
        "reward_version": profile.reward_version,
        "termination_reason": reason,
        "r_loose": 0.0,
        "r_strict": 0.0,
        "r_success": 0,
        "r_type": 0.0,
        "r_att": 0.0,
        "r_option": 0.0,
        "r_price": 0.0,
        "target_asin_match": False,
        "price_verifiable": False,
    }


def type_score(extract: TermExtractor, product: Product, task: Task) -> dict[str, Any]:
    """``r_type`` with the two facts it rests on."""
    shared = set(category_nodes(product.category)) & set(category_nodes(task.category))
    category_match = len(shared) >= 2
    desired = extract(task.name, task.category)
    found = desired & extract(product.title, product.category)
    title_score = len(found) / len(desired) if desired else 0.2
    return {
        "r_type": _type_ladder(category_match, title_score),
        "category_match": category_match,
        "title_score": title_score,
    }


def _type_ladder(category_match: bool, title_score: float) -> float:
    if category_match or title_score > 0.2:
        return 1.0
    if title_score == 0:
        return 0.0
    return 0.1 if title_score < 0.1 else 0.5


def matched_attributes(product: Product, required: Iterable[str]) -> int:
    """How many required attributes the product has, by ratio or as part of its text."""
    owned = product.attributes + product.hidden_attributes
    text = "".join((product.title, *product.bullets, product.description)).casefold()
    return sum(
        not wanted.strip()
        or wanted in owned
        or wanted.casefold() in text
        or any(matches(attribute, wanted) for attribute in owned)
        for wanted in required
    )


def matched_options(selected: Iterable[str], required: Iterable[str]) -> int:
    """How many required option values some selected value satisfies; axes are ignored."""
    values = list(selected)
    return sum(any(matches(value, wanted) for value in values) for wanted in required)


def options_match_exactly(selected: Iterable[str], required: Iterable[str]) -> bool:
    """Whether each required value is selected as it is written, each selected value used once."""
    left = Counter(map(normalise_option, selected))
    left.subtract(map(normalise_option, required))
    return min(left.values(), default=0) >= 0


def price_score(resolution: PriceResolution, ceiling: float | None) -> float:
    """1 without a ceiling, or when the verified price does not exceed it."""
    if ceiling is None:
        return 1.0
    return float(resolution.price is not None and resolution.price <= ceiling)


def _share(matched: int, wanted: int) -> float:
    return matched / wanted if wanted else 1.0
