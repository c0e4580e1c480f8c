"""What a title is about: the terms that ``r_type`` compares (environment.md §4.2).

The published environment switches silently between a language model's nouns and a plain rule, so
two installations can score one purchase differently. Here the extractor has a name, the name is
part of the profile's identity, and one that cannot be had is an error at start-up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from trainer.errors import InputError
from trainer.shop.tokens import han_and_latin

#: (title, category) → distinct terms
TermExtractor = Callable[[str, str], frozenset[str]]

_SEPARATORS = re.compile(r"[›>/\\]")


@lru_cache(maxsize=1 << 16)
def category_nodes(path: str) -> tuple[str, ...]:
    """The nodes of a category path, casefolded, blanks dropped."""
    nodes = (node.strip().casefold() for node in _SEPARATORS.split(path))
    return tuple(node for node in nodes if node)


def _category_leaf(title: str, category: str) -> frozenset[str]:
    return frozenset(category_nodes(category)[-1:])


@lru_cache(maxsize=1 << 15)
def _bigrams(title: str) -> frozenset[str]:
    return frozenset(han_and_latin(title.casefold()))


def _han_bigram_latin(title: str, category: str) -> frozenset[str]:
    return _bigrams(title)


_EXTRACTORS: dict[str, Callable[[], TermExtractor]] = {
    "category-leaf": lambda: _category_leaf,
    "han-bigram-latin-number-v1": lambda: _han_bigram_latin,
}


def term_extractor(name: str) -> TermExtractor:
    """The extractor called ``name``. Raises InputError for an unknown or unavailable one."""
    try:
        make = _EXTRACTORS[name]
    except KeyError:
        raise InputError(
            "unknown term extractor",
            field="type_terms",
            value=name,
            remedy=f"Known extractors: {', '.join(sorted(_EXTRACTORS))}",
        ) from None
    return make()
