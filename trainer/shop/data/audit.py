"""Which tasks can be won at all (environment.md §7.1.15, §7.1.20).

A task can be won when some product and some selection score a full success. The target is tried
first; only when it fails is the whole catalogue searched, so a damaged goal is told from a hard
one. Splits stay as they are: the audit only counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from trainer.shop.matching import matches
from trainer.shop.pages import ProductPage
from trainer.shop.price import normalise_option
from trainer.shop.reward import matched_attributes, type_score
from trainer.shop.types import Task
from trainer.shop.world import World


@dataclass(frozen=True, slots=True)
class Verdict:
    """``reason`` says what stops the target: empty, or the first part that cannot be had."""

    task_id: int
    winnable: bool
    by_target: bool
    reason: str = ""
    asin: str = ""


def audit_task(world: World, task: Task) -> Verdict:
    """Whether ``task`` can be won, by its target or by any product."""
    reason = obstacle(world, world.page(task.asin), task)
    if not reason:
        return Verdict(task.task_id, True, True, asin=task.asin)
    for asin in world.catalogue.products:
        if asin != task.asin and not obstacle(world, world.page(asin), task):
            return Verdict(task.task_id, True, False, reason, asin)
    return Verdict(task.task_id, False, False, reason)


def obstacle(world: World, page: ProductPage, task: Task) -> str:
    """The first part of a full success that ``page`` cannot give, or empty."""
    product = page.product
    if world.profile.purchase_needs_all_options and not all(product.options.values()):
        return "axis_without_values"
    if type_score(world.type_terms, product, task)["r_type"] != 1:
        return "type"
    resolved = selections(page, task.goal_options)
    if not resolved:
        return "options"
    if matched_attributes(product, task.attributes) < len(task.attributes):
        return "attributes"
    return _price_obstacle(resolved, task.price_upper)


def _price_obstacle(resolved: set[float | None], ceiling: float | None) -> str:
    if ceiling is None:
        return ""
    prices = [price for price in resolved if price is not None]
    if not prices:
        return "price_unverifiable"
    return "" if min(prices) <= ceiling else "price"


def selections(page: ProductPage, wanted: tuple[str, ...]) -> set[float | None]:
    """Resolved prices of selections that satisfy every wanted value; empty when none does.

    Each axis gives one value; which targets a value satisfies is all that matters about it, and on
    the axis that moves the price also what it costs."""
    full = (1 << len(wanted)) - 1
    reachable: set[tuple[int, str | None]] = {(0, None)}
    price_axis = page.prices.axes[0] if len(page.prices.axes) == 1 else None
    for axis, values in page.product.options.items():
        choices = {
            (_satisfied(value, wanted), normalise_option(value) if axis == price_axis else None)
            for value in values
        }
        reachable = {
            (mask | more, chosen or priced)
            for mask, priced in reachable
            for more, chosen in choices
        }
    return {
        page.prices.resolve({price_axis: chosen} if price_axis else {}).price
        for mask, chosen in reachable
        if mask == full
    }


def _satisfied(value: str, wanted: tuple[str, ...]) -> int:
    return sum(1 << place for place, target in enumerate(wanted) if matches(value, target))


def audit(world: World, task_ids: Iterable[int]) -> dict[str, Any]:
    """Counts over ``task_ids`` and the tasks that nothing wins."""
    verdicts = [audit_task(world, world.task(task_id)) for task_id in task_ids]
    lost = [verdict for verdict in verdicts if not verdict.winnable]
    return {
        "tasks": len(verdicts),
        "winnable": sum(verdict.winnable for verdict in verdicts),
        "winnable_by_target": sum(verdict.by_target for verdict in verdicts),
        "obstacles_of_targets": dict(
            sorted(Counter(v.reason for v in verdicts if v.reason).items())
        ),
        "unwinnable": [{"task_id": v.task_id, "reason": v.reason} for v in lost],
    }
