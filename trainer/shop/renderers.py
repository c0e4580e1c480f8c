"""The ways to write a page, by name, and the texts of products that a world keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from trainer.shop import budgeted_text, text
from trainer.shop.text import ProductTexts


@dataclass(frozen=True, slots=True)
class Renderer:
    """Writes pages; ``fresh`` writes the texts of products."""

    render: Callable[[Mapping[str, Any], ProductTexts], str]
    fresh: ProductTexts


RENDERERS: Mapping[str, Renderer] = MappingProxyType(
    {
        "published": Renderer(text.render, text.FreshTexts()),
        "budgeted": Renderer(budgeted_text.render, budgeted_text.FreshTexts()),
    }
)


class KeptTexts:
    """The texts of all products, made once: every page shows them again."""

    def __init__(self, fresh: ProductTexts, products: Mapping[str, Any]) -> None:
        self._rows = {asin: fresh.row(product) for asin, product in products.items()}
        self._facts = {asin: fresh.facts(product) for asin, product in products.items()}

    def row(self, product: Mapping[str, Any]) -> str:
        return self._rows[product["asin"]]

    def facts(self, product: Mapping[str, Any]) -> str:
        return self._facts[product["asin"]]
