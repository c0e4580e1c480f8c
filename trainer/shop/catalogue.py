"""A catalogue: products in file order, their search index and the hash that identifies them.

Products come from the published schema (``records.py``) or from a generator. What is indexed
follows environment.md §3.1: tasks, prices, images and variant ids are never searchable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType

from trainer.canonical import fingerprint
from trainer.shop.profiles import ShopProfile
from trainer.shop.search import SearchIndex
from trainer.shop.search_index import IndexBuilder
from trainer.shop.tokens import models, tokenise
from trainer.shop.types import Product

#: token lists in the order of ``search_index.COLUMNS``
Document = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Read-only; shared by all sessions. ``sha256`` identifies the products."""

    products: Mapping[str, Product]
    index: SearchIndex
    sha256: str
    source: str

    @classmethod
    def of(
        cls,
        entries: Iterable[tuple[Product, Document]],
        profile: ShopProfile,
        *,
        source: str,
        sha256: str = "",
    ) -> Catalogue:
        """A catalogue of products and the documents they are found by."""
        builder = IndexBuilder(profile.field_weights)
        products: dict[str, Product] = {}
        for product, document in entries:
            products[product.asin] = product
            builder.add(product.asin, document)
        return cls(MappingProxyType(products), SearchIndex(builder.build()), sha256, source)

    @classmethod
    def from_products(
        cls, products: Iterable[Product], profile: ShopProfile, *, source: str
    ) -> Catalogue:
        """A generated catalogue, identified by the canonical JSON of its products."""
        listed = list(products)
        return cls.of(
            ((product, document_of(product)) for product in listed),
            profile,
            sha256=fingerprint([_record(product) for product in listed]),
            source=source,
        )

    def identified(self, sha256: str) -> Catalogue:
        """The same catalogue under the hash of its data, known only after reading it."""
        return replace(self, sha256=sha256)

    def __len__(self) -> int:
        return len(self.products)


def _record(product: Product) -> dict[str, object]:
    """What ``asdict`` gives, without its deep copies of what JSON only reads."""
    return {field.name: getattr(product, field.name) for field in fields(product)}


def document_of(product: Product) -> Document:
    """The search document of a product that has no source record."""
    options = [text for axis in sorted(product.options) for text in (axis, *product.options[axis])]
    return (
        tokenise(product.title),
        tokenise(product.brand),
        tokenise(product.category),
        models(product.title),
        tokenise(" ".join(product.attributes)),
        tokenise(" ".join(options)),
        tokenise(" ".join(product.bullets)),
    )
