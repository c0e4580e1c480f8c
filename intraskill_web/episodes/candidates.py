"""The first episodes of a filter in an order, by the way that suits the database.

PostgreSQL is asked for ids by their terms, a few at a time, because its planner cannot know how
rare they are together. SQLite walks from the newest on where a range is asked for, because its
planner would take the whole range and sort it; where that meets too little, it sorts after all.
"""

from __future__ import annotations

import time
from functools import lru_cache
from itertools import islice
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from intraskill_web.core.prepared import Prepared
from intraskill_web.episodes import postings
from intraskill_web.episodes.filters import EpisodeFilter
from intraskill_web.episodes.limits import TooSlow, limited
from intraskill_web.episodes.listed import LISTED, Listed
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.order import Key, Order
from intraskill_web.episodes.terms import Terms, expression

WALK_SECONDS = 0.05  # for 500 rows or less
MOST_IDS = 2_000  # in one statement


def take(
    filter_: EpisodeFilter,
    rows: QuerySet[Episode, Any],
    order: Order,
    key: Key | None = None,
    *,
    wanted: int,
    back: bool = False,
) -> list[Any]:
    """The first ``wanted`` of ``rows`` that match, behind ``key``, of the text those that may."""
    if filter_.errors:
        return []
    if not order.column:
        if rows is LISTED and connection.vendor == "sqlite" and filter_.values.keys() <= {"q"}:
            return _newest(filter_.terms(), key, wanted, back=back)
        if connection.vendor == "postgresql" and (terms := filter_.terms()):
            found = postings.ids(terms, key.pk if key else None, back=back)
            return _by_ids(filter_.apply(rows, terms=False), found, order, wanted, back=back)
        if connection.vendor == "sqlite" and filter_.has_ranges:
            try:
                with limited(WALK_SECONDS * max(1.0, wanted / 500)):
                    walked = filter_.apply(rows, walk=True)
                    return list(order.rows(walked, key, back=back)[:wanted])
            except TooSlow:
                pass
    return list(order.rows(filter_.apply(rows), key, back=back)[:wanted])


def count(filter_: EpisodeFilter, most: int, *, seconds: float) -> int:
    """How many match, of the text those that may: ``most`` + 1 where there are more.

    Where PostgreSQL would look at every bit of the index first, its ids are counted from the newest
    on, until there are more than ``most``. Raises TooSlow after so many ``seconds``.
    """
    end = time.monotonic() + seconds
    rows, terms = Episode.objects.order_by(), filter_.terms()
    if connection.vendor != "postgresql" or not terms:
        return filter_.apply(rows)[: most + 1].count()
    rows, found, n = filter_.apply(rows, terms=False), postings.ids(terms, None, back=False), 0
    while n <= most and (some := list(islice(found, most + 1))):
        n += rows.filter(pk__any_of=some).count()
        if time.monotonic() > end:
            raise TooSlow
    return min(n, most + 1)


def _newest(terms: Terms, key: Key | None, wanted: int, *, back: bool) -> list[Listed]:
    found = _prepared(bool(terms), key is not None, wanted, back)
    values = found.rows(terms=expression(terms), pk=key.pk if key else 0)
    return list(map(Listed.of, values))


@lru_cache(64)
def _prepared(asks: bool, goes_on: bool, wanted: int, back: bool) -> Prepared:
    """The list that is asked for most, and most searches: of no filter but the text."""

    def build(terms: str, pk: int) -> QuerySet[Episode, Any]:
        rows = LISTED.filter(search__terms__has_terms=terms) if asks else LISTED
        return Order().rows(rows, Key(pk) if goes_on else None, back=back)[:wanted]

    return Prepared(build, {"terms": str, "pk": int})


def _by_ids(
    rows: QuerySet[Episode, Any], found: Any, order: Order, wanted: int, *, back: bool
) -> list[Any]:
    taken: list[Any] = []
    size = wanted
    while len(taken) < wanted:
        some = list(islice(found, min(size, MOST_IDS)))
        if not some:
            break
        chosen = order.rows(rows.filter(pk__any_of=some), None, back=back)
        taken += chosen[: wanted - len(taken)]
        size *= 4
    return taken
