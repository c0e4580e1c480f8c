"""The words of the synthetic catalogue, read from ``words.toml``. A pair is (Chinese, English)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Kind:
    """A product category: its name, what varies in it, and its price range in yuan."""

    name: Pair
    features: tuple[Pair, ...]
    materials: tuple[Pair, ...]
    sizes: tuple[Pair, ...]
    prices: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Domain:
    """One of the nine domains."""

    key: str
    name: Pair
    kinds: tuple[Kind, ...]


def _pairs(text: str) -> tuple[Pair, ...]:
    """``中文=English`` items separated by semicolons."""
    items = (item.strip().partition("=") for item in text.split(";") if item.strip())
    return tuple((zh, en) for zh, _, en in items)


def _pair(text: str) -> Pair:
    return _pairs(text)[0]


def _kind(raw: dict[str, Any]) -> Kind:
    return Kind(
        name=_pair(raw["name"]),
        features=_pairs(raw["features"]),
        materials=_pairs(raw["materials"]),
        sizes=_pairs(_WORDS["sizes"][raw["sizes"]]),
        prices=(raw["prices"][0], raw["prices"][1]),
    )


_WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))

DOMAINS = tuple(
    Domain(raw["key"], _pair(raw["name"]), tuple(map(_kind, raw["kinds"])))
    for raw in _WORDS["domains"]
)
AXES: dict[str, Pair] = {name: _pair(text) for name, text in _WORDS["axes"].items()}
COLOURS, STYLES, SERVICES, ORIGINS, REGIONS = (
    _pairs(_WORDS[name]) for name in ("colours", "styles", "services", "origins", "regions")
)
BRAND_SYLLABLES_ZH: str = _WORDS["brand_syllables_zh"]
BRAND_SYLLABLES_EN: tuple[str, ...] = tuple(_WORDS["brand_syllables_en"].split())
