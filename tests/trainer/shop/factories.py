"""Small catalogues and tasks, made on the spot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trainer.shop.catalogue import Catalogue
from trainer.shop.profiles import COMPAT, ShopProfile
from trainer.shop.session import ShopSession
from trainer.shop.types import Action, Product, StepResult, Task
from trainer.shop.world import World

#: axis → value → price
Axes = Mapping[str, Mapping[str, float | None]]

WASHER_AXES: Axes = {
    "颜色分类": {"白色": 1999, "黑色": 2099},
    "尺码": {"标准版": 1999, "大号": 1999},
}


def product(asin: str = "932040992888", axes: Axes | None = None, **fields: Any) -> Product:
    """A washing machine unless told otherwise."""
    axes = WASHER_AXES if axes is None else axes
    defaults: dict[str, Any] = {
        "title": "智能热洗洗衣机",
        "brand": "小天",
        "category": "家用电器›洗衣机",
        "attributes": ("智能", "热洗"),
        "pricing": (1999, 2099),
    }
    return Product(
        asin=asin,
        options={axis: tuple(values) for axis, values in axes.items()},
        option_prices={axis: dict(values) for axis, values in axes.items()},
        **{**defaults, **fields},
    )


def task(asin: str = "932040992888", **fields: Any) -> Task:
    """Wants a white washing machine for at most 2100."""
    defaults: dict[str, Any] = {
        "task_id": 0,
        "instruction": "想买一台智能热洗的白色洗衣机，预算2100元以内",
        "instruction_simple": "想买一台洗衣机",
        "persona": {},
        "attributes": ("智能", "热洗"),
        "goal_options": ("白色",),
        "price_upper": 2100,
        "category": "家用电器›洗衣机",
        "name": "智能热洗洗衣机",
    }
    return Task(asin=asin, **{**defaults, **fields})


def world(products: Iterable[Product], *tasks: Task, profile: ShopProfile = COMPAT) -> World:
    """A world of these products and tasks."""
    catalogue = Catalogue.from_products(products, profile, source="test")
    by_id = {item.task_id: item for item in tasks or (task(),)}
    return World(profile, catalogue, by_id, {"train": tuple(by_id)})


def session(shop: World, *actions: str, task_id: int = 0, **settings: Any) -> ShopSession:
    """A session after ``actions``."""
    opened = ShopSession(shop, task_id, **settings)
    opened.reset()
    act(opened, *actions)
    return opened


def act(opened: ShopSession, *actions: str) -> StepResult | None:
    """Carry out ``search:…`` or click values; the last result."""
    result = None
    for text in actions:
        kind, _, query = text.partition("search:")
        action = Action("search", query) if not kind and query else Action("click", text)
        result = opened.step(action)
    return result
