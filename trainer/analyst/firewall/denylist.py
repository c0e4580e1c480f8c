"""Names and values of a whole catalogue that no rule may mention."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trainer.analyst.firewall.background import is_generic, is_ordinary
from trainer.analyst.firewall.folding import Folded, is_han, letters_of
from trainer.shop.catalogue import Catalogue

#: shorter values say nothing by themselves; as values of the goal they are checked all the same
SHORTEST_HAN, SHORTEST_LATIN = 2, 2
_LONGEST = 40


class DenyList:
    """A set of entries, found in a text in one pass over its substrings.

    Entries that ordinary rules use are left out; the goal's own values are checked elsewhere.
    """

    def __init__(self, values: Iterable[str]) -> None:
        entries = {letters_of(value) for value in values}
        self.entries = frozenset(entry for entry in entries if _is_telling(entry))
        self._lengths = sorted({len(entry) for entry in self.entries})

    def hits(self, text: Folded) -> Iterator[str]:
        """The entries that occur in the text."""
        size = len(text.letters)
        seen = set()
        for start in range(size):
            for length in self._lengths:
                if start + length > size:
                    break
                piece = text.letters[start : start + length]
                if piece in self.entries and piece not in seen and text.contains(piece):
                    seen.add(piece)
                    yield piece


def _is_telling(entry: str) -> bool:
    shortest = SHORTEST_HAN if is_han(entry) else SHORTEST_LATIN
    if not shortest <= len(entry) <= _LONGEST or entry.isdecimal():
        return False
    return not (is_ordinary(entry) or is_generic(entry))


def catalogue_brands(catalogue: Catalogue) -> DenyList:
    """The brand column."""
    return DenyList(product.brand for product in catalogue.products.values() if product.brand)


def catalogue_options(catalogue: Catalogue) -> DenyList:
    """Every value of every option axis."""
    return DenyList(
        value
        for product in catalogue.products.values()
        for values in product.options.values()
        for value in values
    )
