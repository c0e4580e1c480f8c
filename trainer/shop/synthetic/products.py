"""Synthetic products: records of the published schema without tasks (environment.md §1.2)."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from trainer.shop.synthetic.words import (
    AXES,
    BRAND_SYLLABLES_EN,
    BRAND_SYLLABLES_ZH,
    COLOURS,
    DOMAINS,
    ORIGINS,
    SERVICES,
    STYLES,
    Domain,
    Kind,
    Pair,
)

_FLAT_PRICE_SHARE = 0.25
_TWO_PRICE_AXES_SHARE = 0.03
_NO_AXES_SHARE = 0.1
_MODEL_SHARE = 0.4


@dataclass(slots=True)
class Draft:
    """A product as its maker thinks of it; ``language`` is 0 for Chinese, 1 for English."""

    language: int
    domain: Domain
    kind: Kind
    brand: str
    features: list[Pair]
    material: Pair
    styles: list[Pair]
    service: Pair
    origin: Pair
    model: str
    base_price: int
    axes: dict[str, list[str]] = field(default_factory=dict)
    axis_steps: dict[str, int] = field(default_factory=dict)

    def say(self, pair: Pair) -> str:
        return pair[self.language]


def draft_product(rng: random.Random, language: int) -> Draft:
    """A fresh product."""
    domain = rng.choice(DOMAINS)
    kind = rng.choice(domain.kinds)
    low, high = kind.prices
    draft = Draft(
        language=language,
        domain=domain,
        kind=kind,
        brand=_brand(rng, language),
        features=rng.sample(kind.features, 3),
        material=rng.choice(kind.materials),
        styles=rng.sample(STYLES, 4),
        service=rng.choice(SERVICES),
        origin=rng.choice(ORIGINS),
        model=_model(rng) if rng.random() < _MODEL_SHARE else "",
        base_price=rng.randint(low, high),
    )
    _draw_axes(draft, rng)
    return draft


def near_duplicate(original: Draft, rng: random.Random) -> Draft:
    """The same article in another shop's words: one feature, the styles, the price differ a
    little.
    """
    low, high = original.kind.prices
    draft = Draft(
        language=original.language,
        domain=original.domain,
        kind=original.kind,
        brand=original.brand if rng.random() < 0.7 else _brand(rng, original.language),
        features=[*original.features[:2], rng.choice(original.kind.features)],
        material=original.material,
        styles=[*original.styles[:2], *rng.sample(STYLES, 2)],
        service=rng.choice(SERVICES),
        origin=original.origin,
        model=original.model,
        base_price=min(high, max(low, round(original.base_price * rng.uniform(0.8, 1.25)))),
    )
    _draw_axes(draft, rng)
    return draft


def _brand(rng: random.Random, language: int) -> str:
    if language == 0:
        return "".join(rng.sample(BRAND_SYLLABLES_ZH, 2)) + rng.choice(("", "", "旗舰店", "专营店"))
    return "".join(rng.sample(BRAND_SYLLABLES_EN, 2)).capitalize()


def _model(rng: random.Random) -> str:
    letters = "".join(rng.choices("abcdkmrsx", k=rng.choice((1, 2))))
    return f"{letters}{rng.randrange(10, 900)}" + rng.choice(("", f"-{rng.randrange(10)}", "pro"))


def _draw_axes(draft: Draft, rng: random.Random) -> None:
    if rng.random() < _NO_AXES_SHARE:
        return
    colours = rng.sample(COLOURS, rng.randint(2, 6))
    draft.axes[draft.say(AXES["colour"])] = [draft.say(colour) for colour in colours]
    sizes = draft.kind.sizes
    if sizes:
        count = rng.randint(2, len(sizes))
        first = rng.randint(0, len(sizes) - count)
        shown = [draft.say(size) for size in sizes[first : first + count]]
        draft.axes[draft.say(AXES["size"])] = shown
    names = list(draft.axes)
    draw = rng.random()
    if draw < _TWO_PRICE_AXES_SHARE:
        draft.axis_steps = {name: _step(draft, rng) for name in names}
    elif draw < 1 - _FLAT_PRICE_SHARE:
        draft.axis_steps = {names[-1]: _step(draft, rng)}


def _step(draft: Draft, rng: random.Random) -> int:
    return max(1, round(draft.base_price * rng.uniform(0.04, 0.15)))


def title_of(draft: Draft, rng: random.Random) -> str:
    """Words run together in Chinese, spaced in English."""
    words = [draft.say(pair) for pair in (*draft.styles[:3], *draft.features[:2], draft.material)]
    rng.shuffle(words)
    parts = [draft.brand, *words, draft.say(draft.kind.name)]
    if draft.language == 0:
        return "".join(parts) + (f" {draft.model}" if draft.model else "")
    return " ".join([*parts, draft.model]).strip()


def attributes_of(draft: Draft, rng: random.Random) -> list[str]:
    """What the listing states; the first ten are shown."""
    stated = [*draft.features, draft.material, *draft.styles, draft.service, draft.origin]
    texts = [draft.say(pair) for pair in stated]
    rng.shuffle(texts)
    return list(dict.fromkeys(texts))


def customization_of(draft: Draft) -> dict[str, list[dict[str, Any]]]:
    """Axis → entries with prices; only axes with a step move the price."""
    return {
        axis: [
            {
                "value": value,
                "price": draft.base_price + draft.axis_steps.get(axis, 0) * place,
                "is_available": True,
            }
            for place, value in enumerate(values)
        ]
        for axis, values in draft.axes.items()
    }


def record_of(draft: Draft, asin: str, tag: str, rng: random.Random) -> dict[str, Any]:
    """The product's record, without tasks and persona."""
    title = title_of(draft, rng)
    customization = customization_of(draft)
    prices = [entry["price"] for entries in customization.values() for entry in entries]
    low, high = min(prices, default=draft.base_price), max(prices, default=draft.base_price)
    return {
        "asin": asin,
        "tag": tag,
        "domain_zh": draft.domain.name[0],
        "domain_en_short": draft.domain.key,
        "domain_en_long": draft.domain.name[1],
        "title": title,
        "sub_title": "",
        "shop_name": draft.brand,
        "category": f"{draft.say(draft.domain.name)}›{draft.say(draft.kind.name)}",
        "attribute": attributes_of(draft, rng),
        "pricing": [low] if low == high else [low, high],
        "customization_options": customization,
        "images": [f"https://shop.invalid/{asin}.jpg"],
        "full_description": title,
    }
