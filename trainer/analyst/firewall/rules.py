"""Our rules, beside the published ones: every value of the goal and every name of the catalogue,
whatever its length, and however it is spaced, widened or cased.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from trainer.analyst.firewall.background import is_ordinary
from trainer.analyst.firewall.folding import Folded, is_han, letters_of
from trainer.analyst.firewall.gold import GoldFacts
from trainer.analyst.firewall.overlap import copies

#: (rule, what was found)
Hit = tuple[str, str]

_DIGITS = re.compile(r"\d(?:[\s\-_.,·/]{0,2}\d){9,}")
_SPELT_DIGITS = re.compile(r"[零〇一二三四五六七八九](?:\s?[零〇一二三四五六七八九]){9,}")
_RUN_ID = re.compile(r"\b(?:task|group|sample|episode)s?\W{0,3}(?:id|no|number)?\W{0,3}\d+")
_HAN_ID = re.compile(r"任务(?:编号|id|号)?\W{0,3}\d{2,}|(?:编号|商品id)\W{0,3}\d{2,}")
_NUMBER = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)(?![\d%])")


def identifier_hits(text: Folded) -> Iterator[Hit]:
    """Ids of products, tasks and episodes in any spelling."""
    for rule, pattern in (
        ("contains_long_identifier", _DIGITS),
        ("contains_long_identifier", _SPELT_DIGITS),
        ("contains_task_id", _RUN_ID),
        ("contains_task_id", _HAN_ID),
    ):
        match = pattern.search(text.text)
        if match:
            yield rule, match.group()
    if text.contains("asin"):
        yield "mentions_asin", "asin"


def gold_hits(text: Folded, facts: GoldFacts, common: Collection[str]) -> Iterator[Hit]:
    """Values of one task and of the products that its episode looked at."""
    for title in facts.titles:
        if text.contains(letters_of(title)) or copies(text, title, common):
            yield "copies_instance_product_title", title
    for brand in (*facts.gold_brands, *facts.seen_brands):
        if _mentions(text, brand):
            yield "copies_instance_brand", brand
    for option in facts.gold_options:
        if _mentions(text, option, axis=facts.gold_axes.get(option, "")) or copies(
            text, option, common
        ):
            yield "copies_gold_option", option
    for attribute in facts.gold_attributes:
        if _mentions(text, attribute) or copies(text, attribute, common):
            yield "copies_gold_attribute", attribute
    yield from _price_hits(text, facts)


def _mentions(text: Folded, value: str, *, axis: str = "") -> bool:
    """A value of the goal; a single character only as a word of its own or after its axis."""
    entry = letters_of(value)
    if len(entry) > 1:
        return not is_ordinary(entry) and text.contains(entry)
    if not entry:
        return False
    if entry in text.words:
        return True
    label = letters_of(axis)
    after = rf"{re.escape(label)}\w?{re.escape(entry)}" if label and is_han(entry) else None
    return after is not None and re.search(after, text.letters) is not None


def _price_hits(text: Folded, facts: GoldFacts) -> Iterator[Hit]:
    """The budget or the price paid, as a number of two digits or more."""
    numbers = {float(match) for match in _NUMBER.findall(text.text) if len(match) > 1}
    for price in facts.prices:
        if price >= 10 and price in numbers:
            yield "copies_gold_price", f"{price:g}"
