"""Index terms on PostgreSQL: for a term and 512 ids in a row, a bit for each that has the term.

GIN over a ``tsvector`` takes 2.5 ms of an episode's 1,200 terms and 14 KB; here a batch of episodes
is some thousand rows of 64 bytes, and what a search asks for is AND over bits, from the newest
episodes on. A bit may outlive its row, whose id no other row ever gets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.db.models import BigAutoField, Lookup

from intraskill_web.episodes.grams import TOO_BIG
from intraskill_web.episodes.terms import Terms

if TYPE_CHECKING:
    AnyLookup = Lookup[Any]
else:
    AnyLookup = Lookup

SHIFT = 9
IDS = 2**SHIFT  # of a segment; the bit of its id n is the (n + 1)th from the right
TABLE = "episodes_search"
FULL = 2**IDS - 1
FIRST_WINDOW = 16  # segments asked for at once, four times as many each time
NONE = f"0::bit({IDS})"
MERGE = f"""
INSERT INTO {TABLE}(term, segment, bits)
SELECT term, %s, bits::bit({IDS}) FROM unnest(%s::text[], %s::text[]) AS made(term, bits)
ON CONFLICT (term, segment) DO UPDATE SET bits = {TABLE}.bits | EXCLUDED.bits
"""


def invert(entries: Iterable[str]) -> dict[str, int]:
    """Term → a bit for each of ``entries`` that has it, the first in bit 0. Pure."""
    masks: dict[str, int] = {}
    for number, terms in enumerate(entries):
        bit = 1 << number
        for term in terms.split():
            masks[term] = masks.get(term, 0) | bit
    return masks


def part(masks: Mapping[str, int], start: int, stop: int) -> dict[str, int]:
    """The masks of the entries from ``start`` up to ``stop``. Pure."""
    all_of_them = (1 << stop - start) - 1
    return {term: bits for term, mask in masks.items() if (bits := mask >> start & all_of_them)}


def write(cursor: Any, first: int, masks: Mapping[str, int], *, new: bool = True) -> None:
    """Add the terms of some ids in a row, of which ``first`` is in bit 0 of the masks.

    Of ``new`` ids a segment of which none was given before is copied; any other is merged.
    """
    segment, at = divmod(first, IDS)
    while masks:
        here = {term: bits for term in sorted(masks) if (bits := masks[term] << at & FULL)}
        rest = {term: bits for term, mask in masks.items() if (bits := mask << at >> IDS)}
        if at or not new:
            bits = [f"x{mask:0{IDS // 4}x}" for mask in here.values()]
            cursor.execute(MERGE, [segment, list(here), bits])
        else:
            rows = [f"{term}\t{segment}\tx{mask:0{IDS // 4}x}\n" for term, mask in here.items()]
            with cursor.copy(f"COPY {TABLE}(term, segment, bits) FROM STDIN") as copy:
                copy.write("".join(rows))
        masks, segment, at = rest, segment + 1, 0


def ids(terms: Terms, key: int | None, *, back: bool) -> Iterator[int]:
    """Ids that have the terms, from the newest before ``key`` on; with ``back``, up from it."""
    newest = _newest()
    if back:
        low, high, step = max(-1, key if key is not None else -1) + 1, newest, FIRST_WINDOW
    else:
        low, high, step = 0, min(newest, key - 1 if key is not None else newest), FIRST_WINDOW
    first, last = low >> SHIFT, high >> SHIFT
    while first <= last:
        window = (
            (first, min(last, first + step - 1)) if back else (max(first, last - step + 1), last)
        )
        for segment, bits in _segments(terms, window, back=back):
            for row_id in ids_of(segment, int(bits, 2), back=back):
                if low <= row_id <= high:
                    yield row_id
        if back:
            first = window[1] + 1
        else:
            last = window[0] - 1
        step *= 4


def sql_of(terms: Terms, where: str = "", *bounds: int) -> tuple[str, list[Any]]:
    """A query for ``segment`` and ``bits`` of the episodes that have the terms."""
    text, marks = list(terms.text), list(terms.marks)
    has = "FILTER (WHERE term = ANY(%s))"
    parts, chosen, having = [], [], ""
    if text:
        parts.append(
            f"(CASE WHEN count(*) {has} = %s THEN bit_and(bits) {has} ELSE {NONE} END"
            f" | coalesce(bit_or(bits) FILTER (WHERE term = %s), {NONE}))"
        )
        chosen += [text, len(text), text, TOO_BIG]
    if marks:
        parts.append(f"bit_and(bits) {has}")
        chosen.append(marks)
        having = f"HAVING count(*) {has} = %s"
    sql = (
        f"SELECT segment, {' & '.join(parts)} AS bits FROM {TABLE}"
        f" WHERE term = ANY(%s) {where} GROUP BY segment {having}"
    )
    asked = [*text, *marks, *([TOO_BIG] if text else [])]
    return sql, [*chosen, asked, *bounds, *([marks, len(marks)] if marks else [])]


@BigAutoField.register_lookup
class HasPostings(AnyLookup):
    """``pk__has_postings=Terms(…)``."""

    lookup_name = "has_postings"
    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        left, parameters = self.process_lhs(compiler, connection)
        sql, asked = sql_of(self.rhs)
        return (
            f"{left} IN (SELECT ((found.segment::bigint << {SHIFT}) + at) FROM"
            f" ({sql}) found, generate_series(0, {IDS - 1}) at"
            f" WHERE found.bits <> {NONE} AND get_bit(found.bits, {IDS - 1} - at) = 1)",
            (*parameters, *asked),
        )


@BigAutoField.register_lookup
class AnyOf(AnyLookup):
    """``pk__any_of=[…]``: one parameter, where ``in`` has one an id, which costs as much again."""

    lookup_name = "any_of"
    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        left, parameters = self.process_lhs(compiler, connection)
        return f"{left} = ANY(%s)", (*parameters, self.rhs)


def _newest() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT max(id) FROM episodes_episode")
        return int(cursor.fetchone()[0] or 0)


def _segments(terms: Terms, window: tuple[int, int], *, back: bool) -> list[tuple[int, str]]:
    sql, parameters = sql_of(terms, "AND segment BETWEEN %s AND %s", *window)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT segment, bits::text FROM ({sql}) found WHERE bits <> {NONE}"
            f" ORDER BY segment {'' if back else 'DESC'}",
            parameters,
        )
        return list(cursor.fetchall())


def ids_of(segment: int, mask: int, *, back: bool) -> Iterator[int]:
    """The ids whose bits are set, in ascending order with ``back``, else descending."""
    base = segment << SHIFT
    while mask:
        bit = (mask & -mask).bit_length() - 1 if back else mask.bit_length() - 1
        yield base + bit
        mask ^= 1 << bit
