"""Variant prices (environment.md §4.5) and the price part of the score (§4.6)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.trainer.shop.factories import WASHER_AXES, Axes, product
from trainer.shop.price import PriceTable
from trainer.shop.reward import price_score


def resolve(selected: Any, axes: Axes | None = None, pricing: tuple[float, ...] = (1999, 2099)):
    return PriceTable.of(product(axes=axes, pricing=pricing)).resolve(selected)


def test_the_price_axis_decides() -> None:
    found = resolve({"颜色分类": "白色", "尺码": "大号"})
    assert (found.status, found.price, found.method) == ("pass", 1999, "selected_price_axis")
    assert found.evidence == {"price_axis": "颜色分类"}


def test_the_price_axis_must_be_named_exactly() -> None:
    found = resolve({"color": "白色"})
    assert (found.status, found.method) == ("unverifiable", "price_axis_unselected")


def test_two_price_axes_make_every_price_unverifiable() -> None:
    axes: Axes = {**WASHER_AXES, "尺码": {"标准版": 1999, "大号": 2199}}
    found = resolve({"颜色分类": "白色", "尺码": "大号"}, axes)
    assert found.method == "multiple_price_affecting_axes"
    assert found.evidence == {"price_affecting_axes": ["颜色分类", "尺码"]}
    assert found.price is None


def test_option_text_is_compared_without_case_blanks_and_slash_form() -> None:
    axes: Axes = {"尺码": {"m | l": 10.0, "Ｘ l": 20.0}}
    assert resolve({"尺码": "M/L"}, axes).price == 10
    assert resolve({"尺码": "xl"}, axes).price == 20


@pytest.mark.parametrize(
    ("selected", "axes", "pricing", "status", "method"),
    [
        (None, None, (1999,), "unverifiable", "invalid_selected_options"),
        (["白色"], None, (1999,), "unverifiable", "invalid_selected_options"),
        ({}, None, (1999,), "unverifiable", "price_axis_unselected"),
        ({"颜色分类": "绿"}, None, (1,), "unverifiable", "selected_variant_price_missing"),
        ({}, {"颜色": {"白": 5.0, "黑": 5.0}}, (9,), "pass", "constant_option_price"),
        ({}, {}, (199,), "pass", "single_listing_price"),
        ({}, {}, (199, 299), "unverifiable", "price_not_deterministic"),
        ({}, {"颜色": {"白": None}}, (199,), "unverifiable", "price_not_deterministic"),
        ({}, {"a": {"x": 1.0}, "b": {"y": 2.0}}, (1,), "unverifiable", "price_not_deterministic"),
    ],
)
def test_each_situation_has_its_method(
    selected: Any, axes: Axes | None, pricing: tuple[float, ...], status: str, method: str
) -> None:
    found = resolve(selected, axes, pricing)
    assert (found.status, found.method) == (status, method)


def test_negative_and_infinite_prices_do_not_count() -> None:
    found = resolve({"颜色": "白"}, {"颜色": {"白": -1.0, "黑": float("inf"), "红": 7.0}})
    assert (found.method, found.price) == ("constant_option_price", 7.0)


def test_without_a_ceiling_every_price_passes() -> None:
    assert price_score(resolve({}), None) == 1.0


def test_the_ceiling_itself_passes() -> None:
    white = resolve({"颜色分类": "白色"})
    assert price_score(white, 1999) == 1.0
    assert price_score(white, 1998.99) == 0.0


def test_an_unverified_price_fails_a_ceiling() -> None:
    assert price_score(resolve({}), 10**9) == 0.0
