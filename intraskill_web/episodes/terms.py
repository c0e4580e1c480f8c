"""What an index row must have, and the lookup that asks FTS5 for it (PostgreSQL: ``postings.py``).

Rows of bodies beyond the limits of the index carry one mark
instead of text terms, so they stay candidates for every text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Lookup, TextField

from intraskill_web.episodes.grams import MARK, TOO_BIG

if TYPE_CHECKING:
    AnyLookup = Lookup[Any]
else:
    AnyLookup = Lookup


@dataclass(frozen=True, slots=True)
class Terms:
    """What an index row must have: ``text`` terms (or the mark), and ``marks`` for certain."""

    text: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text or self.marks)

    def __add__(self, other: Terms) -> Terms:
        return Terms((*self.text, *other.text), (*self.marks, *other.marks))


@TextField.register_lookup
class HasTerms(AnyLookup):
    """``search__terms__has_terms=expression(Terms(…))``."""

    lookup_name = "has_terms"
    prepare_rhs = False

    def as_sqlite(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        left, parameters = self.process_lhs(compiler, connection)
        return f"{left} MATCH %s", [*parameters, self.rhs]


def expression(terms: Terms) -> str:
    """The query in the syntax of FTS5. Terms are word characters and the mark only."""
    for term in (*terms.text, *terms.marks):
        if not term.removeprefix(MARK).isalnum():
            raise ValueError(f"not an index term: {term!r}")
    parts = [f'"{term}"' for term in terms.marks]
    if terms.text:
        text = " AND ".join(f'"{term}"' for term in terms.text)
        parts.append(f'(({text}) OR "{TOO_BIG}")')
    return " AND ".join(parts)
