"""The standard profile's observation text: every fact once, within a budget of characters.

The published text prints each option up to three times a turn (value list, click list, tool
schema), and the whole history stays in the context. Here a product's values stand once, with the
rule how to click them; result lines hold one product each; a long value list is cut and says how
many are missing. What was cut can still be clicked, and no page of whatever product
is longer than ``PAGE_CHARACTERS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from trainer.shop.navigation import ATTRIBUTES
from trainer.shop.observation import format_price
from trainer.shop.text import ABSENT, ProductTexts, check_state, clean, is_product_id, kept_clean

#: no page is longer: 20 result lines, or one product
PAGE_CHARACTERS = 6000

TITLE_CHARACTERS = 60
ATTRIBUTE_CHARACTERS = 60
NAME_CHARACTERS = 40
#: on its own page a product has more room
WHOLE_TITLE_CHARACTERS = 200
WHOLE_ATTRIBUTE_CHARACTERS = 600
#: characters for all value lists of a product page together
OPTION_CHARACTERS = 900
AXES_SHOWN = 20


class FreshTexts:
    """The texts of products, made on the spot."""

    @staticmethod
    def row(product: Mapping[str, Any]) -> str:
        parts = [
            product["asin"],
            cut(clean(product["title"]), TITLE_CHARACTERS),
            f"￥{_name(product['price']).replace(' to ', '-')}",
            _name(product["brand"]),
            _name(product["category"].rsplit("›", 1)[-1]),
        ]
        attributes = join_within(product["key_attributes"], ATTRIBUTE_CHARACTERS)
        return " | ".join([*parts, attributes] if attributes else parts)

    @staticmethod
    def facts(product: Mapping[str, Any]) -> str:
        return (
            f"品牌 {_name(product['brand'])} | {cut(clean(product['category']), 100)}\n"
            f"属性：{_attributes(product['key_attributes'])}"
        )


_FRESH = FreshTexts()


def render(state: Mapping[str, Any], texts: ProductTexts = _FRESH) -> str:
    """The text of a page, one trailing newline. Raises ValueError for an impossible state."""
    check_state(state)
    blocks = list(_PAGES[state["page_type"]](state, texts))
    last_action = state.get("last_action")
    if last_action is not None and not last_action["valid"]:
        blocks.append(f"上次操作无效（{last_action['reason']}）：{clean(last_action['message'])}")
    return "\n".join(blocks) + "\n"


def _home(state: Mapping[str, Any], texts: ProductTexts) -> Iterator[str]:
    yield "【搜索首页】可以搜索商品。"


def _results(state: Mapping[str, Any], texts: ProductTexts) -> Iterator[str]:
    yield (
        f"【搜索结果】“{cut(clean(state['search_text']), ATTRIBUTE_CHARACTERS)}” "
        f"第 {state['page']}/{state['total_pages']} 页，共 {state['total_results']} 项"
    )
    for product in state["products"]:
        yield f"{product['rank']}. {texts.row(product)}"
    buttons = [action for action in state["actions"] if not is_product_id(action)]
    known = "，或商品编号" if state["products"] else "；没有找到商品"
    yield f"可点击：{'、'.join(buttons)}{known}"


def _detail(state: Mapping[str, Any], texts: ProductTexts) -> Iterator[str]:
    product = state["product"]
    price = state.get("selected_price")
    shown = f"￥{format_price(price)}（已选规格）" if price is not None else f"￥{product['price']}"
    title = cut(clean(product["title"]), WHOLE_TITLE_CHARACTERS)
    yield f"【商品详情】{product['asin']} {title}"
    yield f"{shown} | {texts.facts(product)}"
    if "hidden_attributes" in state:
        yield f"更多属性：{_attributes(state['hidden_attributes'])}"
    yield from _options(state)
    buttons = ["back to search", "< prev"]
    buttons += [name for name in (ATTRIBUTES, "buy now") if name in state["actions"]]
    yield f"可点击：{'、'.join(buttons)}" + ("，或 规格=值" if state["available_options"] else "")


def _options(state: Mapping[str, Any]) -> Iterator[str]:
    options = state["available_options"]
    selected = state["selected_options"]
    room = OPTION_CHARACTERS // max(1, min(len(options), AXES_SHOWN))
    for axis, values in islice(options.items(), AXES_SHOWN):
        shown = join_within(values, room, separator=" / ")
        chosen = f"已选 {_name(selected[axis])}" if axis in selected else "未选"
        yield f"规格 {_name(axis)}（{chosen}）：{shown}"
    if len(options) > AXES_SHOWN:
        yield f"…另有 {len(options) - AXES_SHOWN} 个规格"
    missing = state["missing_option_axes"]
    if missing:
        yield f"还需选择：{join_within(missing, WHOLE_ATTRIBUTE_CHARACTERS, separator='、')}"


def _attributes(values: Sequence[str]) -> str:
    return join_within(values, WHOLE_ATTRIBUTE_CHARACTERS) or ABSENT


def _name(text: str) -> str:
    return cut(kept_clean(text), NAME_CHARACTERS)


def _terminal(state: Mapping[str, Any], texts: ProductTexts) -> Iterator[str]:
    yield "【任务结束】不能再进行任何操作。"


def cut(text: str, characters: int) -> str:
    """``text``, at most ``characters`` long."""
    return text if len(text) <= characters else text[: characters - 1] + "…"


def join_within(values: Sequence[str], characters: int, *, separator: str = "；") -> str:
    """As many whole values as fit, and how many were left out; a first that is too long is cut."""
    text = separator.join(map(kept_clean, values))
    if len(text) <= characters:
        return text
    shown: list[str] = []
    used = 0
    for value in map(kept_clean, values):
        used += len(value) + len(separator)
        if shown and used > characters:
            break
        shown.append(cut(value, characters))
    left = len(values) - len(shown)
    text = separator.join(shown)
    return f"{text}{separator}…另有 {left} 项" if left else text


_Page = Callable[[Mapping[str, Any], ProductTexts], Iterator[str]]
_PAGES: Mapping[str, _Page] = {
    "search_home": _home,
    "search_results": _results,
    "product_detail": _detail,
    "terminal": _terminal,
}
