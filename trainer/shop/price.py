"""The price of a selected variant (environment.md §4.5).

A price counts as verified only when the selection decides it. Everything is computed from the
product and the selection; nothing from the task.
"""

from __future__ import annotations

import math
import sys
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from trainer.shop.types import Product


@lru_cache(maxsize=1 << 16)
def normalise_option(text: str) -> str:
    """Option text as the price table knows it: NFKC, casefold, ``/`` as ``|``, no whitespace."""
    return sys.intern(
        "".join(unicodedata.normalize("NFKC", text).casefold().replace("/", "|").split())
    )


@dataclass(frozen=True, slots=True)
class PriceResolution:
    """Whether the price is known, and how. ``price`` is None unless ``status`` is ``pass``."""

    status: Literal["pass", "unverifiable"]
    price: float | None
    method: str
    evidence: Mapping[str, Any]

    @property
    def verified(self) -> bool:
        return self.status == "pass"

    def record(self, version: str) -> dict[str, Any]:
        """The resolution as ``reward_detail.price_resolution`` shows it."""
        return {
            "status": self.status,
            "price": self.price,
            "version": version,
            "method": self.method,
            "evidence": dict(self.evidence),
        }


@dataclass(frozen=True, slots=True)
class PriceTable:
    """A product's prices; ``axes`` are those that change the price.

    ``prices`` of the only such axis are found by exact value first, then by normalised text.
    """

    axes: tuple[str, ...]
    prices: Mapping[str, float | None]
    option_prices: tuple[float, ...]
    listing_prices: tuple[float, ...]
    has_axes: bool

    @classmethod
    def of(cls, product: Product) -> PriceTable:
        distinct = {
            axis: _distinct(prices.values()) for axis, prices in product.option_prices.items()
        }
        axes = tuple([axis for axis, prices in distinct.items() if len(prices) > 1])
        return cls(
            axes=axes,
            prices=product.option_prices[axes[0]] if len(axes) == 1 else {},
            option_prices=tuple(sorted(set().union(*distinct.values()))),
            listing_prices=tuple(sorted(_distinct(product.pricing))),
            has_axes=bool(product.options),
        )

    def resolve(self, selected: object) -> PriceResolution:
        """The price of ``selected`` (axis → value)."""
        if not isinstance(selected, Mapping):
            return _unverifiable("invalid_selected_options", {"reason": "not_an_object"})
        if len(self.axes) > 1:
            return _unverifiable(
                "multiple_price_affecting_axes", {"price_affecting_axes": list(self.axes)}
            )
        if self.axes:
            return self._by_axis(self.axes[0], selected)
        if len(self.option_prices) == 1:
            return PriceResolution("pass", self.option_prices[0], "constant_option_price", {})
        if not self.has_axes and len(self.listing_prices) == 1:
            return PriceResolution("pass", self.listing_prices[0], "single_listing_price", {})
        candidates = self.option_prices or self.listing_prices
        return _unverifiable("price_not_deterministic", {"candidate_prices": list(candidates)})

    def _by_axis(self, axis: str, selected: Mapping[Any, Any]) -> PriceResolution:
        value = selected.get(axis)
        if value is None:
            return _unverifiable("price_axis_unselected", {"price_axis": axis})
        price = self._price(str(value))
        if price is None or not _usable(price):
            return _unverifiable("selected_variant_price_missing", {"price_axis": axis})
        return PriceResolution("pass", price, "selected_price_axis", {"price_axis": axis})

    def _price(self, value: str) -> float | None:
        if value in self.prices:
            return self.prices[value]
        wanted = normalise_option(value)
        found = [p for option, p in self.prices.items() if normalise_option(option) == wanted]
        return found[-1] if found else None


def _distinct(prices: Iterable[float | None]) -> set[float]:
    return {price for price in set(prices) if price is not None and _usable(price)}


def _usable(price: float | None) -> bool:
    return price is not None and 0 <= price < math.inf


def _unverifiable(method: str, evidence: Mapping[str, Any]) -> PriceResolution:
    return PriceResolution("unverifiable", None, method, evidence)
