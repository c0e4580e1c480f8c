"""What a title is about: the terms that ``r_type`` compares (environment.md §4.2).

The published environment switches silently between a language model's nouns and a plain rule, so
two installations can score one purchase differently. Here the extractor has a name, the name is
part of the profile's identity, and one that cannot be had is an error at start-up.
"""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Callable
from functools import lru_cache

from trainer.errors import InputError
from trainer.shop.tokens import han_and_latin

#: (title, category) → distinct terms
TermExtractor = Callable[[str, str], frozenset[str]]

_SPACY_MODEL = "zh_core_web_sm"
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


def _spacy_nouns() -> TermExtractor:
    """Nouns and proper nouns of the pinned Chinese model, loaded and tried at start-up."""
    try:
        model = importlib.import_module("spacy").load(_SPACY_MODEL)
    except (ImportError, OSError) as error:
        raise InputError(
            f"the term extractor needs spaCy and its model {_SPACY_MODEL}",
            field="type_terms",
            value="spacy-zh-core-web-sm",
            remedy=f"pip install spacy && python -m spacy download {_SPACY_MODEL}",
        ) from error

    lock = threading.Lock()

    @lru_cache(maxsize=1 << 15)
    def nouns(title: str) -> frozenset[str]:
        with lock:
            document = model(title)
        found = frozenset(t.text.casefold() for t in document if t.pos_ in ("NOUN", "PROPN"))
        return found or _bigrams(title)

    return lambda title, category: nouns(title)


_EXTRACTORS: dict[str, Callable[[], TermExtractor]] = {
    "category-leaf": lambda: _category_leaf,
    "han-bigram-latin-number-v1": lambda: _han_bigram_latin,
    "spacy-zh-core-web-sm": _spacy_nouns,
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
