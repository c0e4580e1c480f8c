"""Ordinary language: what a clean rule may say although it looks like a value of the catalogue.

Made of texts that are written in this file, never of banks or cards: a leak that once got through
must not become ordinary. The generic values are those that shops use where they have nothing to
say.
"""

from __future__ import annotations

from functools import lru_cache

from trainer.analyst.firewall.folding import Folded, is_han, letters_of

GENERIC_VALUES = """
default, standard, normal, regular, none, other, others, one size, free size, universal, single,
set, new, basic, classic, original, official, all, any, mixed, random, 默认, 标准, 均码, 通用, 其他,
其它, 无, 普通, 常规, 单件, 套装, 新款, 官方标配, 如图, 如图所示, 标配, 原装, 其他颜色, 随机
"""

#: the vocabulary of procedures: how shopping rules are written, in both languages of the project
PROCEDURES = """
Read the request and the persona. Search with every wanted property. Compare the listed products,
their titles, brands, categories, attributes, options and prices before one is opened. When no
listed product fits, turn to the next page, or go back to the search and use other words. On the
product page check brand, material, colour, size and price. Select every option, look at the price
of the selected variant and buy only within the budget. Leave a product that lacks an option. Do not
repeat an action that was refused. Verify the selection before the purchase. Keep enough turns.
Words of the request are better than words of your own.
阅读任务要求和用户画像，提取品牌偏好、价格区间、颜色、尺寸、材质、功能、风格和使用场景等约束。把核心属性组合成搜索词，
先宽后窄，必要时减少限定词重新搜索。搜索结果没有匹配商品时翻到下一页或返回搜索首页。逐一比较候选商品的标题、品牌、类别、
关键属性、规格和价格，只打开明显符合的商品。进入商品详情页后查看全部规格选项和隐藏属性，选择与要求完全一致的规格，确认
所选规格的价格不超过预算上限，再点击购买。缺少所需规格时返回结果页选择其他候选。不要重复无效操作，保留足够的步数完成
购买。购买前核对数量、型号、版本、套餐、容量、款式与用户需求是否一致，优先选择与历史偏好一致的商品。
"""


@lru_cache(maxsize=1)
def _procedures() -> Folded:
    return Folded.of(PROCEDURES)


@lru_cache(maxsize=1)
def _generic() -> frozenset[str]:
    return frozenset(letters_of(value) for value in GENERIC_VALUES.split(","))


@lru_cache(maxsize=1 << 16)
def is_ordinary(entry: str) -> bool:
    """Whether joined letters are a word of ordinary procedures; a Han word as part of a phrase."""
    words = _procedures().words
    return any(entry in word for word in words) if is_han(entry) else entry in words


def is_generic(entry: str) -> bool:
    """Whether joined letters are a value that says nothing; in a goal it counts all the same."""
    return entry in _generic()


@lru_cache(maxsize=1 << 16)
def is_ordinary_gram(gram: str) -> bool:
    """Whether a piece of a word occurs in ordinary procedures."""
    return any(gram in word for word in _procedures().words)
