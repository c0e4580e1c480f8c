"""Paid first pages: the reason to look at page two.

For one query in ``every``, chosen by the hash of its distinct tokens, the first page is replaced
by up to a page of products of the best hit's category that match neither the query's brand nor its
attribute words and are not among the results. The hits move back; the result list keeps its length
limit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from trainer.shop.tokens import tokenise
from trainer.shop.types import Product

#: (product id, tokens of its brand and attributes)
Candidate = tuple[str, frozenset[str]]


class SponsoredPlaces:
    """Chooses paid places for result lists; a pure function of query and results."""

    def __init__(self, products: Iterable[Product], *, every: int, page_size: int) -> None:
        self._every = every
        self._page_size = page_size
        self._category: dict[str, str] = {}
        self._by_category: dict[str, list[Candidate]] = {}
        for product in products:
            text = " ".join((product.brand, *product.attributes, *product.hidden_attributes))
            candidate = (product.asin, frozenset(tokenise(text)))
            self._category[product.asin] = product.category
            self._by_category.setdefault(product.category, []).append(candidate)

    def place(self, tokens: Sequence[str], results: tuple[str, ...], limit: int) -> tuple[str, ...]:
        """``results`` with a paid first page where the query draws one."""
        draw = query_draw(tokens)
        if not results or draw % self._every:
            return results
        wanted, listed = set(tokens), set(results)
        candidates = [
            asin
            for asin, words in self._by_category[self._category[results[0]]]
            if asin not in listed and not words & wanted
        ]
        if not candidates:
            return results
        start = (draw // self._every) % len(candidates)
        paid = (candidates[start:] + candidates[:start])[: self._page_size]
        return (*paid, *results)[:limit]


def query_draw(tokens: Iterable[str]) -> int:
    """The number that decides about a query: MD5 of its sorted distinct tokens."""
    text = " ".join(sorted(set(tokens)))
    return int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(), 16)
