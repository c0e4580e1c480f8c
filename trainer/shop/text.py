"""The standard observation text (environment.md §2.7): plain lines, one trailing newline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Protocol

from trainer.shop.observation import PRIVATE_KEYS, format_price

ABSENT = "未提供"


def clean(value: str) -> str:
    """A value on one line, blanks collapsed."""
    if value and value.isprintable() and "  " not in value and value[0] != " " != value[-1]:
        return value
    return " ".join(value.split()) or ABSENT


#: ``clean`` for axes and values, which come again on every click; never for an agent's texts
kept_clean = lru_cache(maxsize=1 << 15)(clean)


def is_product_id(value: str) -> bool:
    """Whether a click value is a product: twelve decimal digits."""
    return len(value) == 12 and value.isascii() and value.isdigit()


class ProductTexts(Protocol):
    """How products read: made on the spot, or kept by a world, since every page shows them."""

    def row(self, product: Mapping[str, Any]) -> str:
        """A product of a result list, without its rank."""
        ...

    def facts(self, product: Mapping[str, Any]) -> str:
        """What stands under the price on a product's own page, apart from its options."""
        ...


class FreshTexts:
    """The texts of products, made on the spot."""

    @staticmethod
    def row(product: Mapping[str, Any]) -> str:
        lines = [
            clean(product["title"]),
            f"   ASIN：{product['asin']}",
            f"   价格：{clean(product['price'])}",
            f"   品牌：{clean(product['brand'])}",
            f"   类别：{clean(product['category'])}",
        ]
        if product["key_attributes"]:
            lines.append(f"   关键属性：{_joined(product['key_attributes'])}")
        return "\n".join(lines)

    @staticmethod
    def facts(product: Mapping[str, Any]) -> str:
        return (
            f"- 品牌：{clean(product['brand'])}\n- 类别：{clean(product['category'])}\n"
            f"- 关键属性：{_joined(product['key_attributes']) or ABSENT}"
        )


_FRESH = FreshTexts()


def render(state: Mapping[str, Any], texts: ProductTexts = _FRESH) -> str:
    """The text of a page. Raises ValueError for a state that no shop page can have."""
    check_state(state)
    lines = list(_PAGES[state["page_type"]](state, texts))
    if "last_action" in state:
        lines += ["", *_last_action(state["last_action"])]
    lines += ["", "页面能力："]
    lines += _interactions(state["search_available"], state["actions"])
    return "\n".join(lines) + "\n"


def check_state(state: Mapping[str, Any]) -> None:
    """Refuse private fields, unknown pages and results that differ from the clickable ids."""
    if not PRIVATE_KEYS.isdisjoint(state):
        raise ValueError(f"private fields in an observation: {PRIVATE_KEYS & set(state)}")
    page_type = state.get("page_type")
    if page_type == "search_results":
        _check_products(state)
    elif page_type not in _PAGES:
        raise ValueError(f"unknown page type {page_type!r}")


def _home(state: Mapping[str, Any], texts: ProductTexts) -> Iterator[str]:
    yield "页面：搜索首页"


def _results(state: Mapping[str, Any], texts: ProductTexts) -> list[str]:
    row = texts.row
    products = state["products"]
    return [
        f"页面：搜索结果\n搜索词：{clean(state['search_text'])}\n"
        f"结果：第 {state['page']}/{state['total_pages']} 页，共 {state['total_results']} 项，"
        f"当前显示排名 {state['rank_start']}-{state['rank_end']}\n\n商品列表：",
        *[f"{product['rank']}. {row(product)}" for product in products],
        *(() if products else ("（本页没有商品）",)),
    ]


def _check_products(state: Mapping[str, Any]) -> None:
    products = [product["asin"] for product in state["products"]]
    actions = state["actions"]
    buttons = len(actions) - len(products)
    if actions[buttons:] != products or any(map(is_product_id, actions[:buttons])):
        raise ValueError("the products of a result page differ from its clickable ids")


def _joined(values: Iterable[str]) -> str:
    return "；".join(map(clean, values))


def _detail(state: Mapping[str, Any], texts: ProductTexts) -> Iterator[str]:
    product = state["product"]
    price = state.get("selected_price")
    shown = clean(product["price"]) if price is None else format_price(price)
    yield (
        f"页面：商品详情\n商品：\n- 标题：{clean(product['title'])}\n"
        f"- ASIN：{product['asin']}\n- 价格：{shown}\n{texts.facts(product)}"
    )
    if "hidden_attributes" in state:
        yield f"- 更多属性：{_joined(state['hidden_attributes']) or ABSENT}"
    yield "\n规格选择："
    if not state["available_options"]:
        yield "- 该商品没有规格选项"
        return
    selected = state["selected_options"]
    for axis, values in state["available_options"].items():
        name = kept_clean(axis)
        chosen = f"已选择 {kept_clean(selected[axis])}" if axis in selected else "尚未选择"
        yield f"- {name}：{chosen}\n  可选值：{' / '.join(map(kept_clean, values))}"
    missing = state["missing_option_axes"]
    if missing:
        yield f"仍需选择：{'、'.join(map(kept_clean, missing))}"
    else:
        yield "规格状态：已全部选择，可以购买"


def _terminal(state: Mapping[str, Any], texts: ProductTexts) -> Iterator[str]:
    yield "页面：任务已终止"
    yield "任务已经结束，不能再进行任何操作。"


def _last_action(record: Mapping[str, Any]) -> Iterator[str]:
    yield "上次交互结果："
    yield f"- 结果：{'成功' if record['valid'] else '无效'}"
    yield f"- 说明：{clean(record['message'])}"
    if record["reason"] != "executed":
        yield f"- 原因代码：{record['reason']}"


def _interactions(search_available: bool, actions: list[str]) -> list[str]:
    lines = ["- 支持商品搜索"] if search_available else []
    if actions:
        return [*lines, *([""] if lines else ()), "可点击元素：", *map(_bullet, actions)]
    return lines or ["当前页面没有可交互元素。"]


@lru_cache(maxsize=1 << 15)
def _bullet(action: str) -> str:
    return f"- {clean(action)}"


_Page = Callable[[Mapping[str, Any], ProductTexts], Iterable[str]]
_PAGES: Mapping[str, _Page] = {
    "search_home": _home,
    "search_results": _results,
    "product_detail": _detail,
    "terminal": _terminal,
}
