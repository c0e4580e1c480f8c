"""A small world of the standard profile: two fridges, one of them wanted in white."""

from __future__ import annotations

from trainer.shop.catalogue import Catalogue
from trainer.shop.profiles import STANDARD
from trainer.shop.types import Product, Task
from trainer.shop.world import World

WANTED = "000000000001"
OTHER = "000000000002"


def product(asin: str, title: str) -> Product:
    return Product(
        asin=asin,
        title=title,
        brand="海风",
        category="家电 › 冰箱 › 迷你冰箱",
        attributes=("智能", "静音"),
        options={"颜色": ("白色", "黑色")},
        option_prices={"颜色": {"白色": 199.0, "黑色": 299.0}},
        pricing=(199.0, 299.0),
    )


def task(task_id: int, persona: dict[str, object]) -> Task:
    return Task(
        task_id=task_id,
        asin=WANTED,
        instruction="买一台白色的静音迷你冰箱，预算250元",
        instruction_simple="买一台迷你冰箱",
        persona=persona,
        attributes=("静音",),
        goal_options=("白色",),
        price_upper=250.0,
        category="家电 › 冰箱 › 迷你冰箱",
        name="海风 迷你冰箱",
    )


def standard_world() -> World:
    catalogue = Catalogue.from_products(
        [product(WANTED, "海风 迷你冰箱 静音"), product(OTHER, "海风 宿舍冰箱 智能")],
        STANDARD,
        source="test",
    )
    tasks = {1: task(1, {"预算": "250元", "偏好": {"颜色": "白色"}}), 2: task(2, {})}
    return World(STANDARD, catalogue, tasks, {"train": (1, 2), "val": (1, 2)})
