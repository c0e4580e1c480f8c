"""The state machine (environment.md §2.1–2.4, §7.2)."""

from __future__ import annotations

import pytest

from tests.trainer.shop.factories import act, product, session, task, world
from trainer.errors import InputError
from trainer.shop.profiles import COMPAT, MINI, STANDARD
from trainer.shop.session import EpisodeOver, ShopSession
from trainer.shop.types import Action
from trainer.shop.world import World

TARGET = "932040992888"


@pytest.fixture(scope="module")
def shop() -> World:
    others = [product(f"{n:012d}", title=f"洗衣机 {n}", attributes=("普通",)) for n in range(1, 45)]
    return world([product(), *others])


def actions(opened: ShopSession) -> list[str]:
    state = opened.observe().state
    listed: list[str] = state["actions"]
    return listed


def test_home_offers_search_and_nothing_to_click(shop: World) -> None:
    state = session(shop).observe().state
    assert (state["page_type"], state["search_available"], state["actions"]) == (
        "search_home",
        True,
        [],
    )


def test_results_offer_buttons_then_products_best_first(shop: World) -> None:
    opened = session(shop, "search:智能热洗洗衣机")
    state = opened.observe().state
    assert state["page_type"] == "search_results"
    assert state["search_available"] is False
    assert state["actions"][:3] == ["back to search", "next >", TARGET]
    assert (state["page"], state["total_pages"], state["total_results"]) == (1, 3, 45)


def test_page_two_of_forty_shows_ranks_twenty_one_to_forty() -> None:
    products = [product(f"{n:012d}", {}, title="冰箱") for n in range(1, 41)]
    opened = session(world(products), "search:冰箱", "next >")
    state = opened.observe().state
    assert [item["rank"] for item in state["products"]] == list(range(21, 41))
    assert (state["rank_start"], state["rank_end"]) == (21, 40)
    assert "next >" not in state["actions"]
    assert state["actions"] == [
        "back to search",
        "< prev",
        *(item["asin"] for item in state["products"]),
    ]


def test_a_search_without_hits_offers_only_the_way_back(shop: World) -> None:
    state = session(shop, "search:zzz").observe().state
    assert state["actions"] == ["back to search"]
    assert (state["rank_start"], state["rank_end"], state["total_pages"]) == (0, 0, 1)


def test_no_more_than_150_results_in_eight_pages() -> None:
    products = [product(f"{n:012d}", {}, title="冰箱") for n in range(1, 200)]
    opened = session(world(products), "search:冰箱", *["next >"] * 7)
    state = opened.observe().state
    assert (state["page"], state["total_pages"], state["rank_end"]) == (8, 8, 150)
    assert len(state["products"]) == 10


def test_searching_is_possible_on_the_home_page_only(shop: World) -> None:
    opened = session(shop, "search:洗衣机")
    result = act(opened, "search:冰箱")
    assert result is not None
    assert result.feedback is not None
    assert result.feedback["reason"] == "search_unavailable"
    result = act(opened, "back to search", "search:洗衣机")
    assert result is not None
    assert result.feedback is not None
    assert result.feedback["valid"] is True


def test_a_product_offers_every_value_but_the_selected_one(shop: World) -> None:
    opened = session(shop, "search:智能热洗洗衣机", TARGET)
    assert actions(opened) == [
        "back to search",
        "< prev",
        "颜色分类=白色",
        "颜色分类=黑色",
        "尺码=标准版",
        "尺码=大号",
    ]
    act(opened, "颜色分类=白色")
    assert actions(opened) == [
        "back to search",
        "< prev",
        "颜色分类=黑色",
        "尺码=标准版",
        "尺码=大号",
    ]
    act(opened, "尺码=大号")
    assert "buy now" in actions(opened)


def test_values_shared_by_two_axes_stay_apart() -> None:
    twice = product(axes={"里": {"红": 1}, "外": {"红": 1}})
    opened = session(world([twice]), "search:洗衣机", TARGET, "里=红")
    assert actions(opened) == ["back to search", "< prev", "外=红"]
    assert opened.selected == {"里": "红"}


def test_selected_and_missing_axes_are_reported(shop: World) -> None:
    state = session(shop, "search:智能热洗洗衣机", TARGET, "尺码=大号").observe().state
    assert state["selected_options"] == {"尺码": "大号"}
    assert state["missing_option_axes"] == ["颜色分类"]
    assert state["options_complete"] is False
    assert "selected_price" not in state


def test_the_resolved_price_is_shown_as_soon_as_it_is_known(shop: World) -> None:
    state = session(shop, "search:智能热洗洗衣机", TARGET, "颜色分类=黑色").observe().state
    assert state["selected_price"] == 2099


def test_buying_needs_every_axis(shop: World) -> None:
    opened = session(shop, "search:智能热洗洗衣机", TARGET)
    result = act(opened, "buy now")
    assert result is not None
    assert result.feedback == {
        "action": "click[buy now]",
        "valid": False,
        "reason": "incomplete_options",
        "message": result.observation.state["last_action"]["message"],
        "missing_option_axes": ["颜色分类", "尺码"],
    }
    assert result.done is False


def test_a_purchase_ends_the_episode_with_score_purchase_and_goal(shop: World) -> None:
    opened = session(shop, "search:智能热洗洗衣机", TARGET, "颜色分类=白色", "尺码=大号")
    result = act(opened, "buy now")
    assert result is not None
    assert (result.done, result.reward, result.termination_reason) == (True, 1.0, "purchase")
    assert result.observation.state["page_type"] == "terminal"
    assert result.observation.state["actions"] == []
    assert result.purchase["options"] == {"颜色分类": "白色", "尺码": "大号"}
    assert list(result.purchase) == [
        "asin",
        "category",
        "name",
        "product_category",
        "instruction_text",
        "attributes",
        "price",
        "options",
    ]
    assert list(result.goal) == [
        "task_id",
        "task_uid",
        "source_product_index",
        "asin",
        "category",
        "name",
        "instruction_text",
        "instruction_simple",
        "attributes",
        "price_upper",
        "price_constraint",
        "goal_options",
        "user_persona",
        "reason_key",
        "weight",
    ]


def test_a_product_without_axes_is_complete_at_once() -> None:
    opened = session(world([product(axes={})]), "search:洗衣机", TARGET)
    assert actions(opened) == ["back to search", "< prev", "buy now"]


def test_an_axis_without_values_can_never_be_satisfied() -> None:
    opened = session(world([product(axes={"套餐": {}})]), "search:洗衣机", TARGET)
    result = act(opened, "buy now")
    assert result is not None
    assert result.feedback is not None
    assert result.feedback["missing_option_axes"] == ["套餐"]


def test_going_back_keeps_the_results_page_and_drops_the_selection(shop: World) -> None:
    opened = session(shop, "search:洗衣机", "next >")
    first = opened.observe().state["products"][0]["asin"]
    act(opened, first, "颜色分类=白色", "< prev")
    assert opened.observe().state["page"] == 2
    act(opened, first)
    assert opened.selected == {}


@pytest.mark.parametrize(
    ("before", "click", "reason"),
    [
        ((), "anything", "unavailable_action"),
        ((), "   ", "empty_argument"),
        (("search:智能热洗洗衣机",), "Next >", "unavailable_action"),
        (("search:智能热洗洗衣机",), "< prev", "unavailable_action"),
        (("search:智能热洗洗衣机",), "search", "unavailable_action"),
        (("search:智能热洗洗衣机", TARGET), "Buy Now", "unavailable_action"),
        (("search:智能热洗洗衣机", TARGET), "attributes", "unavailable_action"),
        (("search:智能热洗洗衣机", TARGET), "颜色分类=绿色", "unavailable_action"),
        (("search:智能热洗洗衣机", TARGET, "尺码=大号"), "尺码=大号", "already_selected"),
    ],
)
def test_refused_clicks_say_why_and_change_nothing(
    shop: World, before: tuple[str, ...], click: str, reason: str
) -> None:
    opened = session(shop, *before)
    page = opened.page_type
    result = opened.step(Action("click", click))
    assert result.feedback is not None
    assert (result.feedback["valid"], result.feedback["reason"]) == (False, reason)
    assert opened.page_type == page
    assert result.observation.state["last_action"] == result.feedback


def test_a_blank_search_is_refused(shop: World) -> None:
    result = session(shop).step(Action("search", "  "))
    assert result.feedback is not None
    assert result.feedback["reason"] == "empty_argument"


def test_every_action_counts_and_the_limit_ends_with_zero(shop: World) -> None:
    opened = session(shop, "search:洗衣机", *["nonsense"] * 28)
    assert opened.actions_taken == 29
    result = opened.reject("what?", "invalid_format")
    assert (result.done, result.reward, result.termination_reason) == (True, 0.0, "action_limit")
    assert result.purchase == {}
    assert result.feedback is not None
    assert result.observation.state["page_type"] == "search_results"
    assert result.observation.state["actions"]


def test_a_purchase_with_the_last_action_counts() -> None:
    opened = session(world([product(axes={})]), "search:洗衣机", TARGET, max_actions=3)
    result = act(opened, "buy now")
    assert result is not None
    assert result.termination_reason == "purchase"


@pytest.mark.parametrize("reason", ["action_limit", "generation_length"])
def test_callers_may_end_an_episode_once(shop: World, reason: str) -> None:
    opened = session(shop, "search:洗衣机")
    result = opened.terminate(reason)  # type: ignore[arg-type]
    assert (result.done, result.reward, result.purchase) == (True, 0.0, {})
    assert result.feedback is None
    assert result.reward_detail["termination_reason"] == reason
    with pytest.raises(EpisodeOver):
        opened.terminate(reason)  # type: ignore[arg-type]


def test_a_finished_episode_takes_no_step(shop: World) -> None:
    opened = session(shop)
    opened.terminate("action_limit")
    with pytest.raises(EpisodeOver):
        opened.step(Action("search", "x"))


def test_a_session_must_be_reset_first(shop: World) -> None:
    with pytest.raises(EpisodeOver):
        ShopSession(shop, 0).step(Action("search", "x"))


def test_callers_may_not_claim_a_purchase(shop: World) -> None:
    with pytest.raises(ValueError, match="not for callers"):
        session(shop).terminate("purchase")


def test_context_limit_is_a_policy_failure_of_our_profiles_only(shop: World) -> None:
    with pytest.raises(ValueError, match="context_limit"):
        session(shop).terminate("context_limit")
    ours = session(world([product()], profile=STANDARD))
    assert ours.terminate("context_limit").reward_detail["r_strict"] == 0.0


def test_an_unknown_task_is_a_clear_error(shop: World) -> None:
    with pytest.raises(InputError, match="unknown task"):
        ShopSession(shop, 999)


@pytest.mark.parametrize("query", ["<r>", "<c> 家用电器", "<c>", "<a> x", "search_results"])
def test_the_debug_prefixes_of_the_ancestor_are_plain_words(query: str) -> None:
    opened = session(world([product()], profile=COMPAT), f"search:{query}")
    state = opened.observe().state
    assert state["page_type"] == "search_results"
    assert state["total_results"] <= 1


# --- settings of the embedded world


def test_mini_buys_open_axes_at_their_first_value() -> None:
    shop = world([product()], profile=MINI)
    opened = session(shop, "search:智能热洗洗衣机", TARGET, "颜色分类=黑色")
    result = act(opened, "buy now")
    assert result is not None
    assert result.purchase["options"] == {"颜色分类": "黑色", "尺码": "标准版"}


def test_mini_shows_hidden_attributes_once_asked() -> None:
    shop = world([product(hidden_attributes=("铜",))], profile=MINI)
    opened = session(shop, "search:智能热洗洗衣机", TARGET)
    assert "hidden_attributes" not in opened.observe().state
    assert "attributes" in actions(opened)
    act(opened, "attributes")
    assert opened.observe().state["hidden_attributes"] == ["铜"]
    assert "attributes" not in actions(opened)


def test_mini_marks_products_that_were_opened() -> None:
    shop = world([product(), product("000000000001")], profile=MINI)
    opened = session(shop, "search:智能热洗洗衣机", TARGET, "< prev")
    seen = {item["asin"]: item["seen"] for item in opened.observe().state["products"]}
    assert seen == {TARGET: True, "000000000001": False}


def test_a_wrong_category_scores_nothing_in_mini() -> None:
    shop = world(
        [product(), product("000000000001", {}, category="家用电器›冰箱")],
        task(goal_options=(), price_upper=None),
        profile=MINI,
    )
    opened = session(shop, "search:智能热洗洗衣机", "000000000001")
    result = act(opened, "buy now")
    assert result is not None
    assert (result.reward_detail["r_type"], result.reward) == (0.0, 0.0)
