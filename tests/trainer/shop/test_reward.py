"""The score of a purchase (environment.md §4.1–4.3, §4.8, §7.2)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.trainer.shop.factories import Axes, act, product, session, task, world
from trainer.errors import InputError
from trainer.shop.price import PriceTable
from trainer.shop.profiles import COMPAT, STANDARD
from trainer.shop.reward import (
    matched_attributes,
    matched_options,
    options_match_exactly,
    score_nothing,
    score_purchase,
    type_score,
)
from trainer.shop.terms import term_extractor
from trainer.shop.types import Product

TERMS = term_extractor(COMPAT.type_terms)


def score(selected: dict[str, str], bought: Product | None = None, **goal: Any) -> dict[str, Any]:
    bought = bought or product()
    resolution = PriceTable.of(bought).resolve(selected)
    return score_purchase(
        COMPAT, TERMS, product=bought, selected=selected, task=task(**goal), resolution=resolution
    )


def test_the_white_machine_is_a_full_success() -> None:
    detail = score({"颜色分类": "白色", "尺码": "标准版"})
    parts = ("r_type", "r_att", "r_option", "r_price", "r_loose", "r_strict", "r_success")
    assert [detail[part] for part in parts] == [1, 1, 1, 1, 1, 1, 1]
    assert detail["target_asin_match"] is True
    assert isinstance(detail["r_success"], int)


def test_another_product_can_succeed() -> None:
    detail = score({"颜色分类": "白色"}, product(asin="111111111111"))
    assert detail["r_success"] == 1
    assert detail["target_asin_match"] is False


def test_the_black_target_is_worth_three_quarters_loosely_and_nothing_strictly() -> None:
    detail = score({"颜色分类": "黑色"})
    assert detail["target_asin_match"] is True
    assert (detail["r_option"], detail["r_strict"], detail["r_success"]) == (0, 0, 0)
    assert detail["r_loose"] == 0.75


def test_a_price_over_the_ceiling_fails() -> None:
    axes: Axes = {"颜色分类": {"白色": 2200, "黑色": 2300}}
    assert score({"颜色分类": "白色"}, product(axes=axes))["r_price"] == 0


def test_no_selection_fails_a_ceiling_and_is_not_verifiable() -> None:
    detail = score({})
    assert (detail["r_price"], detail["price_verifiable"]) == (0, False)


def test_no_ceiling_and_no_selection_passes_the_price() -> None:
    detail = score({}, price_upper=None)
    assert (detail["r_price"], detail["price_verifiable"]) == (1, False)


def test_the_detail_has_exactly_the_specified_keys() -> None:
    assert list(score({})) == [
        "reward_version",
        "termination_reason",
        "r_type",
        "category_match",
        "title_score",
        "num_attr_matches",
        "num_option_matches",
        "r_att",
        "r_option",
        "r_price",
        "r_loose",
        "r_strict",
        "r_success",
        "target_asin_match",
        "price_verifiable",
        "price_upper",
        "price_resolution",
    ]
    assert score({})["reward_version"] == "shopsimulator-paper-reward-v2"
    assert score({})["price_resolution"]["version"] == "variant-price-paper-v2"


def test_no_purchase_has_exactly_the_specified_detail() -> None:
    assert score_nothing(COMPAT, "action_limit") == {
        "reward_version": "shopsimulator-paper-reward-v2",
        "termination_reason": "action_limit",
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


def ladder(shared: int, desired: int = 20) -> dict[str, Any]:
    wanted = " ".join(f"term{number}" for number in range(desired))
    bought = " ".join(f"term{number}" for number in range(shared)) or "other"
    return type_score(
        TERMS, product(title=bought, category="甲›乙"), task(name=wanted, category="丙›丁")
    )


@pytest.mark.parametrize(("shared", "r_type"), [(0, 0.0), (1, 0.1), (2, 0.5), (4, 0.5), (5, 1.0)])
def test_the_title_ladder(shared: int, r_type: float) -> None:
    assert ladder(shared)["r_type"] == r_type


def test_no_desired_term_scores_a_fifth_of_a_title() -> None:
    found = ladder(0, desired=0)
    assert (found["title_score"], found["r_type"]) == (0.2, 0.5)


@pytest.mark.parametrize(
    ("bought", "wanted", "match"),
    [
        ("家电›洗衣机", "家电>洗衣机", True),
        ("家电/洗衣机", "家电\\ 洗衣机 ", True),
        ("A›B›C", "b›c›d", True),
        ("家电›冰箱", "家电›洗衣机", False),
        ("家电›家电", "家电›家电", False),
        ("", "", False),
    ],
)
def test_a_category_matches_by_two_distinct_nodes(bought: str, wanted: str, match: bool) -> None:
    found = type_score(TERMS, product(category=bought, title="x"), task(category=wanted, name="y"))
    assert found["category_match"] is match


def test_attributes_count_by_ratio_by_text_and_when_blank() -> None:
    bought = product(attributes=("材质：纯棉",), title="可机洗四件套", bullets=("亲肤",))
    assert matched_attributes(bought, ["可机洗", "亲肤", " ", "羊毛"]) == 3
    assert matched_attributes(bought, ["纯棉 材质"]) == 1


def test_hidden_attributes_count_too() -> None:
    assert matched_attributes(product(hidden_attributes=("铜",)), ["铜"]) == 1


def test_one_selected_value_may_satisfy_several_targets() -> None:
    assert matched_options(["白色 加厚"], ["白色", "加厚"]) == 2


def test_different_words_around_a_shared_part_do_not_match() -> None:
    assert matched_options(["深海blue色"], ["天空blue款"]) == 0


def test_nothing_wanted_is_all_satisfied() -> None:
    detail = score({}, attributes=(), goal_options=(), price_upper=None)
    assert (detail["r_att"], detail["r_option"], detail["r_loose"]) == (1, 1, 1)
    assert (detail["num_attr_matches"], detail["num_option_matches"]) == (0, 0)


def test_the_strict_diagnostic_sees_a_wrong_size_that_the_score_accepts() -> None:
    axes: Axes = {"尺寸": {"180x200cm": 5, "180x220cm": 5}}
    shop = world([product(axes=axes)], task(goal_options=("180x220cm",)), profile=STANDARD)
    opened = session(shop, "search:洗衣机", "932040992888", "尺寸=180x200cm")
    result = act(opened, "buy now")
    assert result is not None
    assert result.reward_detail["r_option"] == 1.0
    assert result.reward_detail["exact_option_match"] is False


def test_exact_matching_uses_each_selected_value_once() -> None:
    assert options_match_exactly(["M/L", "白色"], ["m | l"])
    assert not options_match_exactly(["白色 加厚"], ["白色", "加厚"])
    assert not options_match_exactly(["白色"], ["白色", "白色"])


def test_an_unknown_term_extractor_is_refused() -> None:
    with pytest.raises(InputError, match="unknown term extractor"):
        term_extractor("nouns-maybe")
