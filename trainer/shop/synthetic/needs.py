"""Synthetic tasks and personas: what somebody wants, and how much of it they say.

A persona task's short text hides things: the budget then stands only in the full text or follows
from the persona's price range, which is what makes reading the persona worthwhile (environment.md
§1.5, §1.6).
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from trainer.shop.synthetic.products import Draft
from trainer.shop.synthetic.words import COLOURS, REGIONS, STYLES

_HEADROOM = (1.0, 1.0, 1.05, 1.1, 1.25, 1.5)


@dataclass(frozen=True, slots=True)
class Need:
    """What a task wants of its target product."""

    attributes: tuple[str, ...]
    options: dict[str, str]
    ceiling: int | None


def draw_need(draft: Draft, record: dict[str, Any], rng: random.Random) -> Need:
    """A need that the product itself satisfies."""
    count = min(len(record["attribute"]), rng.choice((2, 3, 3, 4, 5, 6)))
    attributes = tuple(rng.sample(record["attribute"], count))
    wanted = {axis: rng.choice(values) for axis, values in draft.axes.items() if rng.random() < 0.8}
    price = draft.base_price + sum(
        step * draft.axes[axis].index(wanted[axis]) if axis in wanted else 0
        for axis, step in draft.axis_steps.items()
    )
    ceiling = round(price * rng.choice(_HEADROOM)) if rng.random() < 0.85 else None
    return Need(attributes, wanted, ceiling)


def sentences(draft: Draft, need: Need, rng: random.Random, *, hide: bool) -> tuple[str, str]:
    """(short text, full text). ``hide`` keeps budget and some wishes out of the short one."""
    said = need.attributes[: 1 if hide else len(need.attributes)]
    short = _sentence(draft, said, {} if hide else need.options, None if hide else need.ceiling)
    full = _sentence(draft, need.attributes, need.options, need.ceiling)
    return (short, full) if hide else (full, full)


def _sentence(
    draft: Draft, attributes: tuple[str, ...], options: dict[str, str], ceiling: int | None
) -> str:
    kind = draft.say(draft.kind.name)
    if draft.language == 0:
        text = f"想买一款{'、'.join(attributes)}的{kind}"
        text += "".join(f"，{axis}要{value}" for axis, value in options.items())
        return text + (f"，预算{ceiling}元以内。" if ceiling else "。")
    text = f"I am looking for a {kind} that is {', '.join(attributes)}"
    text += "".join(f", {axis.lower()} {value}" for axis, value in options.items())
    return text + (f", under {ceiling} yuan." if ceiling else ".")


def persona_of(draft: Draft, need: Need, user: str, rng: random.Random) -> dict[str, Any]:
    """A complete persona; its price range is where a hidden budget can be read."""
    say = draft.say
    high = need.ceiling or draft.base_price * 2
    return {
        "用户ID": user,
        "注册时间": f"20{rng.randint(16, 24)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}",
        "注册渠道": rng.choice(("App", "Web", "H5")),
        "最后更新时间": f"2025-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}",
        "用户标签": [say(style) for style in rng.sample(STYLES, 3)],
        "地区信息": {
            "省份": say(rng.choice(REGIONS)),
            "城市": f"{rng.choice('甲乙丙丁')}市",
            "区县": f"{rng.randint(1, 9)}区",
            "时区": "UTC+8",
        },
        "人口属性": {
            "性别": rng.choice(("男", "女")),
            "年龄段": rng.choice(("18-24", "25-34", "35-44", "45-54")),
            "消费等级": rng.choice(("低", "中", "高")),
            "会员等级": rng.randint(1, 6),
        },
        "行为特征": {
            "日均浏览时长": rng.randint(5, 90),
            "近7天访问次数": rng.randint(1, 40),
            "活跃时间段": sorted(rng.sample(range(24), 4)),
            "常用设备": rng.choice(("Android", "iOS")),
            "最近14天搜索关键词": [say(draft.kind.name), say(rng.choice(STYLES))],
            "最近14天收藏商品": [say(draft.kind.name)],
            "最近14天加购商品": [say(draft.material) + say(draft.kind.name)],
            "最近14天关注店铺": [draft.brand],
        },
        "交易特征": {
            "近30天消费金额": rng.randint(50, 5000),
            "近90天订单数": rng.randint(1, 40),
            "平均客单价": round(high * rng.uniform(0.6, 0.9), 2),
            "复购率": round(rng.random(), 2),
            "支付方式偏好": rng.choice(("支付宝", "银行卡", "花呗")),
            "优惠券使用率": round(rng.random(), 2),
            "是否促销敏感": rng.random() < 0.5,
        },
        "兴趣偏好": {
            "类目偏好": [say(draft.domain.name)],
            "品牌偏好": [draft.brand],
            "商品属性偏好": {
                "颜色": list(need.options.values())[:1] or [say(rng.choice(COLOURS))],
                "材质": [say(draft.material)],
                "特点": list(need.attributes[1:4]),
                "价格区间": {"最小值": round(high * 0.3), "最大值": high},
            },
        },
    }
