"""One page of the episode list by key, its capped count with facets, and an episode's neighbours.

Counting stops at COUNT_LIMIT, so that a huge list answers as fast; facets count the newest
FACET_LIMIT, and say so where there are more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.db.models import prefetch_related_objects

from intraskill_web.episodes.filters import EpisodeFilter
from intraskill_web.episodes.limits import TooSlow, limited
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.order import Key, Order
from intraskill_web.episodes.search import Found, search
from intraskill_web.episodes.words import Hit

PAGE = 50
COUNT_LIMIT = 10_000
FACET_LIMIT = 2_000
COUNT_SECONDS = 1.0
# what facets count: parameter → column
FACETS = {
    "purpose": "purpose",
    "outcome": "outcome",
    "treatment": "treatment_mode",
    "triage": "triage",
    "termination": "termination",
    "admitted": "admitted",
    "category": "category",
}


@dataclass(frozen=True, slots=True)
class ListPage:
    """``older`` and ``newer`` are the keys to page from; None where the list ends.

    ``stopped`` says that time was over while looking through texts: ``older`` goes on from there.
    """

    rows: list[Episode]
    older: Key | None
    newer: Key | None
    hits: Mapping[int, Hit] = field(default_factory=dict)
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class Counted:
    """How many match, up to the limit; ``facets`` counts the values of each facet among them.

    ``certain`` is False when the index may count episodes that do not hold the words, ``known`` is
    False when counting took too long.
    """

    count: int
    capped: bool
    facets: Mapping[str, Counter[Any]]
    certain: bool = True
    known: bool = True
    sampled: bool = False  # the facets count the newest FACET_LIMIT only


def list_page(
    filter_: EpisodeFilter,
    order: Order,
    *,
    before: Key | None = None,
    after: Key | None = None,
) -> ListPage:
    """The page behind ``before``, or in front of ``after``, or the first."""
    rows = filter_.apply(Episode.objects.defer("behaviour"))
    back = after is not None
    key = after or before
    if filter_.words and not filter_.errors:
        found = search(rows, filter_.words, order, wanted=PAGE + 1, key=key, back=back)
    else:
        found = Found(list(order.rows(rows, key, back=back)[: PAGE + 1]))
    taken, more = found.rows[:PAGE], len(found.rows) > PAGE or found.stopped is not None
    prefetch_related_objects(taken, "experiment", "round")  # few, where a join makes one a row
    if back:
        taken.reverse()
    first, last = (order.key(taken[0]), order.key(taken[-1])) if taken else (key, key)
    if found.stopped is not None:
        first, last = (found.stopped, last) if back else (first, found.stopped)
    return ListPage(
        rows=taken,
        older=last if more or back else None,
        newer=first if (more if back else key is not None) else None,
        hits=found.hits,
        stopped=found.stopped is not None,
    )


def counted(filter_: EpisodeFilter) -> Counted:
    """The facets of the newest FACET_LIMIT that match and, where there are more, the count."""
    certain = not filter_.words or filter_.words.certain
    if filter_.errors:
        return Counted(0, capped=False, facets={})
    rows = Order().rows(filter_.apply(Episode.objects.all()), None)
    sql, parameters = rows.values_list(*FACETS.values())[:FACET_LIMIT].query.sql_with_params()
    try:
        with limited(COUNT_SECONDS):
            with connection.cursor() as cursor:
                cursor.execute(sql, parameters)
                values = cursor.fetchall()
            count = len(values)
            if count == FACET_LIMIT:
                count = rows.order_by()[: COUNT_LIMIT + 1].count()
    except TooSlow:
        return Counted(0, capped=True, facets={}, certain=certain, known=False)
    columns = zip(*values, strict=True) if values else ()
    facets = dict(zip(FACETS, map(Counter, columns), strict=False))
    return Counted(
        min(count, COUNT_LIMIT), count > COUNT_LIMIT, facets, certain, sampled=count > FACET_LIMIT
    )


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The episodes before and after one in a filtered list, and its place (None beyond the cap)."""

    previous: int | None
    following: int | None
    place: int | None
    count: int
    capped: bool


def neighbours(filter_: EpisodeFilter, order: Order, episode: Episode) -> Neighbours:
    """Where ``episode`` stands in the filtered list. Four queries without words."""
    found = filter_.apply(Episode.objects.select_related("experiment"))
    if order.column and getattr(episode, order.column) is None:
        order = Order()
    key = order.key(episode)
    if filter_.words and not filter_.errors:
        words = filter_.words
        ahead = search(found, words, order, wanted=1, key=key, back=True).rows
        behind = search(found, words, order, wanted=1, key=key).rows
        return Neighbours(_pk(ahead), _pk(behind), None, 0, capped=False)
    try:
        with limited(COUNT_SECONDS):
            before = order.rows(found, key, back=True)
            ids = list(before.values_list("pk", flat=True)[: COUNT_LIMIT + 1])
            behind = list(order.rows(found, key)[:1])
            count = found.order_by()[: COUNT_LIMIT + 1].count()
    except TooSlow:
        return Neighbours(None, None, None, 0, capped=True)
    return Neighbours(
        previous=ids[0] if ids else None,
        following=_pk(behind),
        place=len(ids) + 1 if len(ids) <= COUNT_LIMIT else None,
        count=min(count, COUNT_LIMIT),
        capped=count > COUNT_LIMIT,
    )


def _pk(rows: list[Episode]) -> int | None:
    return rows[0].pk if rows else None
