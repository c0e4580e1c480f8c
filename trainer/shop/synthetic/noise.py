"""The faults of the real data, planted on purpose (environment.md §1.5, §7.1.15, §7.1.20)."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Record = dict[str, Any]


def _persona(record: Record) -> dict[str, Any] | None:
    persona = record.get("user_persona")
    return persona if persona else None


def missing_persona_path(record: Record, rng: random.Random) -> None:
    """A persona lacks one of its usual paths."""
    if persona := _persona(record):
        del persona[rng.choice(("用户标签", "注册渠道", "最后更新时间"))]


def misplaced_trade(record: Record, rng: random.Random) -> None:
    """交易特征 is nested under 行为特征."""
    persona = _persona(record)
    if persona and "交易特征" in persona:
        persona["行为特征"]["交易特征"] = persona.pop("交易特征")


def placeholder_strings(record: Record, rng: random.Random) -> None:
    """Comma-only and blank strings among real values."""
    if persona := _persona(record):
        persona["行为特征"]["最近14天搜索关键词"] += [",", ""]


def comma_after_user(record: Record, rng: random.Random) -> None:
    """The user id ends in a comma."""
    if persona := _persona(record):
        persona["用户ID"] += ","


def emoji_lost(record: Record, rng: random.Random) -> None:
    """The catalogue's value has an emoji where the wanted one has a question mark."""
    task = record["instructions"][0]
    axes = record["customization_options"]
    if not task["instruction_options"]:
        return
    wanted = task["instruction_options"][0]
    for entries in axes.values():
        for entry in entries:
            if entry["value"] == wanted:
                entry["value"] = f"{wanted}🔥爆款"
    task["instruction_options"][0] = f"{wanted}?爆款"


def option_not_offered(record: Record, rng: random.Random) -> None:
    """The wanted option is not in the catalogue: the task cannot be won with this product."""
    record["instructions"][0]["instruction_options"] = ["已下架款式"]


def blank_attribute(record: Record, rng: random.Random) -> None:
    """The only target attribute is a blank string."""
    record["instructions"][0]["attributes"] = [" "]


def no_attributes(record: Record, rng: random.Random) -> None:
    """The target has no attributes: the task disappears."""
    record["instructions"][0]["attributes"] = []


def empty_axis(record: Record, rng: random.Random) -> None:
    """An axis without values: the product cannot be bought."""
    record["customization_options"]["套餐"] = []


def null_axis(record: Record, rng: random.Random) -> None:
    """An axis whose list is null: it is dropped."""
    record["customization_options"]["赠品"] = None


def spaced_axis(record: Record, rng: random.Random) -> None:
    """An axis name begins with a space."""
    axes = record["customization_options"]
    record["customization_options"] = {f" {axis}": entries for axis, entries in axes.items()}


def slash_in_value(record: Record, rng: random.Random) -> None:
    """An option value holds a slash and capitals."""
    for entries in record["customization_options"].values():
        if entries:
            entries.append({"value": "均码/One Size", "price": entries[0]["price"]})


def no_price(record: Record, rng: random.Random) -> None:
    """The listing has no price."""
    record["pricing"] = []


def vague_budget(record: Record, rng: random.Random) -> None:
    """A budget that is a lower bound, an instalment, or no number."""
    task = record["instructions"][0]
    extra = rng.choice(
        ("，价格要超过20元", "，每月分期20元", "，预算有限，想买一个好的", "，预算4k+")
    )
    for key in ("instruction", "instruction_simple"):
        if key in task:
            task[key] = task[key].split("，预算")[0].rstrip("。") + extra


NOISE: dict[str, Callable[[Record, random.Random], None]] = {
    noise.__name__: noise
    for noise in (
        missing_persona_path,
        misplaced_trade,
        placeholder_strings,
        comma_after_user,
        emoji_lost,
        option_not_offered,
        blank_attribute,
        no_attributes,
        empty_axis,
        null_axis,
        spaced_axis,
        slash_in_value,
        no_price,
        vague_budget,
    )
}
