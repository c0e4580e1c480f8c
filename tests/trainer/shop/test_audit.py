"""The winnability audit."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trainer.shop.factories import Axes, product, task, world
from trainer.shop.data.audit import audit, obstacle, selections
from trainer.shop.price import PriceTable
from trainer.shop.profiles import COMPAT
from trainer.shop.reward import score_purchase
from trainer.shop.types import Product
from trainer.shop.world import World


def reason_of(bought: Product, **goal: object) -> str:
    shop = world([bought], task(**goal))
    return obstacle(shop, shop.page(bought.asin), shop.task(0))


def test_a_task_that_its_target_wins() -> None:
    assert reason_of(product()) == ""


@pytest.mark.parametrize(
    ("bought", "goal", "reason"),
    [
        (product(axes={"套餐": {}}), {}, "axis_without_values"),
        (product(title="鞋", category="服饰›鞋"), {}, "type"),
        (product(), {"goal_options": ("绿色",)}, "options"),
        (product(), {"goal_options": ("白色", "黑色")}, "options"),
        (product(), {"attributes": ("静音",)}, "attributes"),
        (product(), {"price_upper": 1998}, "price"),
        (product(axes={}, pricing=(1, 2)), {"goal_options": ()}, "price_unverifiable"),
    ],
)
def test_the_first_obstacle_is_named(bought: Product, goal: dict[str, object], reason: str) -> None:
    assert reason_of(bought, **goal) == reason


def test_another_product_can_win_what_the_target_cannot() -> None:
    shop = world(
        [product(axes={"颜色": {"黑色": 5}}), product("000000000002")],
        task(),
        task(task_id=1, goal_options=("紫色",)),
    )
    assert audit(shop, [0, 1]) == {
        "tasks": 2,
        "winnable": 1,
        "winnable_by_target": 0,
        "obstacles_of_targets": {"options": 2},
        "unwinnable": [{"task_id": 1, "reason": "options"}],
    }


VALUES = ["白色", "黑色", "白色 加厚", "加厚", "M", "L"]
AXES = st.dictionaries(
    st.sampled_from(["颜色", "尺码", "款式"]),
    st.dictionaries(
        st.sampled_from(VALUES), st.sampled_from([None, 5.0, 9.0]), min_size=1, max_size=4
    ),
    max_size=3,
)


@given(AXES, st.lists(st.sampled_from(VALUES), max_size=3), st.sampled_from([None, 5, 7, 20]))
def test_the_audit_equals_trying_every_selection(
    axes: Axes, wanted: list[str], ceiling: float | None
) -> None:
    bought = product(axes=axes, pricing=(5, 9))
    shop: World = world([bought], task(goal_options=tuple(wanted), price_upper=ceiling))
    goal, page = shop.task(0), shop.page(bought.asin)
    prices = PriceTable.of(bought)
    tried = [
        score_purchase(
            COMPAT,
            shop.type_terms,
            product=bought,
            selected=dict(zip(axes, values, strict=True)),
            task=goal,
            resolution=prices.resolve(dict(zip(axes, values, strict=True))),
        )["r_success"]
        for values in itertools.product(*axes.values())
    ]
    assert (obstacle(shop, page, goal) == "") == (max(tried) == 1)
    assert bool(selections(page, goal.goal_options)) or not any(tried)
