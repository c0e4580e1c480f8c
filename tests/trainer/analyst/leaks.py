"""A corpus of planted leaks and one of clean rules, drawn with fixed seeds."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from trainer.analyst.firewall.gold import GoldFacts

Disguise = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Leak:
    """One planted leak: which field, how it was disguised, and the deployable text."""

    field: str
    disguise: str
    text: str
    facts: GoldFacts


def wide(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


def spaced(text: str) -> str:
    return " ".join(text.replace(" ", ""))


def hidden(text: str) -> str:
    return "\u200b".join(text)


def dotted(text: str) -> str:
    return "·".join(text.replace(" ", ""))


def ideographic(text: str) -> str:
    return text.replace(" ", "\u3000") + "\u3000"


DISGUISES: dict[str, Disguise] = {
    "verbatim": str,
    "wide": wide,
    "spaced": spaced,
    "hidden": hidden,
    "dotted": dotted,
    "upper": str.upper,
    "squeezed": lambda text: text.replace(" ", ""),
    "ideographic": ideographic,
    "decomposed": lambda text: unicodedata.normalize("NFD", text),
}
CARRIERS = (
    "优先选择「{}」对应的商品，然后核对规格。",
    "当任务有明确约束时，先查找{}，再比较候选。",
    "Look for {} first, then compare the candidates.",
    "- Procedure:\n  1. 进入详情页\n  2. 确认是否为 {}\n- Avoid: 忽略约束",
)


def planted(all_facts: list[GoldFacts], rng: random.Random) -> Iterator[Leak]:
    """Every field of every task in every disguise, each in a random sentence."""
    for facts in all_facts:
        for field, value in fields(facts, rng):
            for name, disguise in DISGUISES.items():
                text = rng.choice(CARRIERS).format(disguise(value))
                yield Leak(field, name, text, facts)


def fields(facts: GoldFacts, rng: random.Random) -> Iterator[tuple[str, str]]:
    for title in facts.gold_titles:
        yield "title", title
        yield "title-part", part(title)
        yield "title-shuffled", shuffled(title, rng)
    for brand in (*facts.gold_brands, *facts.seen_brands[:1]):
        yield "brand", brand
    for option in facts.gold_options:
        yield "option", option
    for attribute in facts.gold_attributes:
        yield "attribute", attribute
    for identifier in facts.identifiers[:1]:
        yield "id", identifier


def part(title: str) -> str:
    """The first three quarters of a title, whole words where it has words."""
    words = title.split()
    if len(words) > 2:
        return " ".join(words[: -(-len(words) * 3 // 4)])
    return title[: -(-len(title) * 3 // 4)]


def shuffled(title: str, rng: random.Random) -> str:
    words = title.split()
    if len(words) < 3:
        middle = len(title) // 2
        return title[middle:] + title[:middle]
    rng.shuffle(words)
    return " ".join(words)


WHEN = (
    "搜索结果首页没有合适的商品时",
    "用户画像给出历史搜索线索时",
    "任务同时限定多项要求时",
    "详情页存在多个可选轴时",
    "价格随所选规格变化时",
    "首次搜索返回的结果过于宽泛时",
    "候选商品的标题都很相似时",
    "when the first page shows nothing suitable",
    "when several listed items look alike",
    "when the wanted variant is not offered",
    "when a price changes with the chosen variant",
    "when the persona states a preference that the request does not repeat",
)
DO = (
    "先翻看后续页面再打开商品",
    "把画像里的线索并入查询词",
    "逐项核对每一条约束并记录未满足的部分",
    "依次点开每个轴并确认已选状态",
    "在下单之前再次读取当前价格",
    "减少修饰词后重新检索",
    "打开两个以上候选并对照差异",
    "turn the page before anything is opened",
    "open two of them and weigh the differences",
    "return to the list and try another entry",
    "read the price again right before paying",
    "put every stated wish into the query",
)
CHECK = (
    "确认每条要求都能在页面上找到依据",
    "确认没有遗漏的可选轴",
    "确认总价未超出上限",
    "确认步数足够完成下单",
    "每一步之后都能看到预期的页面变化",
    "each wish can be pointed at on the page",
    "no axis is left open",
    "the amount stays below the ceiling",
    "enough turns remain to finish",
    "the page changed as expected",
)


def clean_rules(count: int, rng: random.Random) -> list[str]:
    """Rules as a careful analyst writes them: general, observable, without any value."""
    rules: dict[str, None] = {}
    while len(rules) < count:
        when, do, check = rng.choice(WHEN), rng.choice(DO), rng.choice(CHECK)
        rules[f"- Applies when: {when}\n- Procedure:\n  1. {do}\n- Verify: {check}"] = None
    return list(rules)
