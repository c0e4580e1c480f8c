"""What a product's page needs, prepared once and shared by all sessions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainer.shop.price import PriceTable
from trainer.shop.types import Product


@dataclass(frozen=True, slots=True)
class ProductPage:
    """A product with its summary and prices; ``choices`` maps a click value to its option."""

    product: Product
    summary: dict[str, Any]
    prices: PriceTable
    choices: Mapping[str, tuple[str, str]]
    shown_options: Mapping[str, list[str]]

    @classmethod
    def of(
        cls,
        product: Product,
        summary: dict[str, Any],
        prices: PriceTable,
        *,
        values_shown: int,
    ) -> ProductPage:
        """Two options with one label collapse into the first."""
        choices: dict[str, tuple[str, str]] = {}
        for axis, values in product.options.items():
            for value in values:
                choices.setdefault(f"{axis}={value}", (axis, value))
        return cls(
            product=product,
            summary=summary,
            prices=prices,
            choices=choices,
            shown_options={axis: list(v[:values_shown]) for axis, v in product.options.items()},
        )

    def complete(self, selected: Mapping[str, str]) -> dict[str, str]:
        """``selected`` with the first value for every axis left open."""
        first = {axis: values[0] for axis, values in self.product.options.items() if values}
        return {**first, **selected}
