"""What the agent reads: the published text (environment.md §2.7) and the budgeted one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.trainer.shop.factories import act, product, session, task, world
from trainer.shop import budgeted_text, text
from trainer.shop.profiles import COMPAT, STANDARD
from trainer.shop.world import World

TARGET = "932040992888"


@pytest.fixture(scope="module")
def shop() -> World:
    return world([product(), product("000000000001", {}, title="冰箱  迷你", brand="")])


def page(shop: World, *actions: str) -> str:
    return session(shop, *actions).observe().text


def test_home_has_the_search_capability_and_no_click_syntax(shop: World) -> None:
    assert page(shop) == "页面：搜索首页\n\n页面能力：\n- 支持商品搜索\n"


def test_a_results_page_reads_as_specified(shop: World) -> None:
    assert page(shop, "search:智能热洗，冰箱") == (
        "页面：搜索结果\n"
        "搜索词：智能热洗，冰箱\n"
        "结果：第 1/1 页，共 2 项，当前显示排名 1-2\n"
        "\n"
        "商品列表：\n"
        "1. 智能热洗洗衣机\n"
        "   ASIN：932040992888\n"
        "   价格：1999 to 2099\n"
        "   品牌：小天\n"
        "   类别：家用电器›洗衣机\n"
        "   关键属性：智能；热洗\n"
        "2. 冰箱 迷你\n"
        "   ASIN：000000000001\n"
        "   价格：1999 to 2099\n"
        "   品牌：未提供\n"
        "   类别：家用电器›洗衣机\n"
        "   关键属性：智能；热洗\n"
        "\n"
        "上次交互结果：\n"
        "- 结果：成功\n"
        "- 说明：操作已执行。\n"
        "\n"
        "页面能力：\n"
        "可点击元素：\n"
        "- back to search\n"
        "- 932040992888\n"
        "- 000000000001\n"
    )


def test_a_product_page_reads_as_specified(shop: World) -> None:
    assert page(shop, "search:洗衣机", TARGET, "颜色分类=黑色") == (
        "页面：商品详情\n"
        "商品：\n"
        "- 标题：智能热洗洗衣机\n"
        "- ASIN：932040992888\n"
        "- 价格：2099\n"
        "- 品牌：小天\n"
        "- 类别：家用电器›洗衣机\n"
        "- 关键属性：智能；热洗\n"
        "\n"
        "规格选择：\n"
        "- 颜色分类：已选择 黑色\n"
        "  可选值：白色 / 黑色\n"
        "- 尺码：尚未选择\n"
        "  可选值：标准版 / 大号\n"
        "仍需选择：尺码\n"
        "\n"
        "上次交互结果：\n"
        "- 结果：成功\n"
        "- 说明：操作已执行。\n"
        "\n"
        "页面能力：\n"
        "可点击元素：\n"
        "- back to search\n"
        "- < prev\n"
        "- 颜色分类=白色\n"
        "- 尺码=标准版\n"
        "- 尺码=大号\n"
    )


def test_an_invalid_action_is_shown_with_its_reason(shop: World) -> None:
    shown = page(shop, "search:洗衣机", "nowhere")
    assert "- 结果：无效\n" in shown
    assert "- 原因代码：unavailable_action\n" in shown


def test_no_page_contains_call_syntax_or_the_normalised_query(shop: World) -> None:
    for actions in ((), ("search:洗衣机，ＵＳＢ",), ("search:洗衣机", TARGET), ("x",)):
        shown = page(shop, *actions)
        assert "search[" not in shown
        assert "click[" not in shown
        assert "洗衣机 usb" not in shown
        assert shown.endswith("\n")
        assert not shown.endswith("\n\n")


def test_at_most_a_hundred_values_are_displayed_and_all_can_be_clicked() -> None:
    many = product(axes={"颜色": {f"色{n}": 5 for n in range(130)}})
    opened = session(world([many]), "search:洗衣机", TARGET)
    state = opened.observe().state
    assert len(state["available_options"]["颜色"]) == 100
    assert len(state["actions"]) == 2 + 130
    assert opened.observe().text.count("色129") == 1


@pytest.mark.parametrize("key", ["goal", "reward", "reward_detail", "target_asin", "answer"])
def test_private_fields_are_refused(shop: World, key: str) -> None:
    state = {**session(shop).observe().state, key: 1}
    for render in (text.render, budgeted_text.render):
        with pytest.raises(ValueError, match="private"):
            render(state)


def test_unknown_pages_and_foreign_ids_are_refused(shop: World) -> None:
    state = dict(session(shop, "search:洗衣机").observe().state)
    with pytest.raises(ValueError, match="unknown page"):
        text.render({**state, "page_type": "checkout"})
    with pytest.raises(ValueError, match="differ"):
        text.render({**state, "actions": ["back to search", "123456789012"]})


def test_the_state_never_names_the_goal() -> None:
    secret = task(attributes=("秘密属性",), goal_options=("秘密颜色",), price_upper=4242)
    shop = world([product()], secret)
    for actions in ((), ("search:洗衣机",), ("search:洗衣机", TARGET)):
        shown = session(shop, *actions).observe()
        for private in ("秘密", "4242"):
            assert private not in shown.text
            assert private not in str(shown.state)


# --- budgeted


def crowded(profile_values: int) -> World:
    axes = {"颜色": {f"雾霾蓝加绒款{n}": 5 for n in range(profile_values)}, "尺码": {"M": 5}}
    return world([product(axes=axes)], profile=STANDARD)


def test_the_budgeted_page_keeps_every_fact_once() -> None:
    opened = session(crowded(5), "search:洗衣机", TARGET, "尺码=M")
    shown = opened.observe().text
    assert shown.count("雾霾蓝加绒款3") == 1
    assert "￥5（已选规格）" in shown
    assert "规格 尺码（已选 M）：M" in shown
    assert "还需选择：颜色" in shown


def test_long_value_lists_are_cut_and_say_so_but_stay_clickable() -> None:
    opened = session(crowded(200), "search:洗衣机", TARGET)
    page = opened.observe()
    assert len(page.text) < 1200
    assert "…另有" in page.text
    assert "颜色=雾霾蓝加绒款199" in page.state["actions"]
    assert page.state["actions_abridged"] is True


def test_the_budgeted_text_is_much_shorter_than_the_published_one() -> None:
    products = [product(f"{n:012d}") for n in range(1, 60)]
    pages = {}
    for profile in (COMPAT, STANDARD):
        opened = session(world(products, profile=profile), "search:洗衣机")
        pages[profile.name] = len(opened.observe().text)
    assert pages["standard"] < 0.75 * pages["compat"]


def test_a_refused_action_is_explained_in_the_budgeted_text() -> None:
    shown = session(crowded(2), "search:洗衣机", "nowhere").observe().text
    assert "上次操作无效（unavailable_action）" in shown


@pytest.mark.parametrize("axes", [1, 500])
def test_no_product_makes_a_budgeted_page_longer_than_its_budget(axes: int) -> None:
    long = "很长的名字" * 400
    monster = product(
        axes={f"{long}{n}": {f"{long}{v}": 5 for v in range(300 // axes + 1)} for n in range(axes)},
        title=f"洗衣机{long}",
        brand=long,
        category=f"{long}›{long}",
        attributes=(long,) * 30,
    )
    products = [replace(monster, asin=f"{n:012d}") for n in range(20)]
    opened = session(world(products, profile=STANDARD), f"search:洗衣机{long}")
    results = opened.observe()
    assert len(results.state["products"]) == 20
    act(opened, results.state["actions"][-1])
    detail = opened.observe()
    act(opened, detail.state["actions"][-1])
    chosen = opened.observe()
    for page in (results, detail, chosen):
        assert len(page.text) <= budgeted_text.PAGE_CHARACTERS
    assert f"{long}" not in chosen.text
    assert "（已选 很长的名字" in chosen.text or axes > 1
