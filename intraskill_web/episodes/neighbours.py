"""Where an episode stands in a filtered list: the ones before and after it, and its place.

Places are counted in the database up to PLACES, so an episode opens as fast in any list.
"""

from __future__ import annotations

from dataclasses import dataclass

from intraskill_web.episodes.candidates import take
from intraskill_web.episodes.counting import COUNT_SECONDS
from intraskill_web.episodes.filters import EpisodeFilter
from intraskill_web.episodes.limits import TooSlow, limited
from intraskill_web.episodes.listed import Listed
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.order import Order
from intraskill_web.episodes.search import search, search_sorted

PLACES = 2_000  # counted to either side


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
    if order.column and getattr(episode, order.column) is None:
        order = Order()
    key = order.key(episode)
    if filter_.words and not filter_.errors:
        ask = search_sorted if order.column else search
        ahead = ask(filter_, order, wanted=1, key=key, back=True).rows
        behind = ask(filter_, order, wanted=1, key=key).rows
        return Neighbours(_pk(ahead), _pk(behind), None, 0, capped=False)
    ids = Episode.objects.values_list("pk", flat=True)
    found = filter_.apply(ids)
    previous = following = None
    try:
        with limited(COUNT_SECONDS):
            previous = next(iter(take(filter_, ids, order, key, wanted=1, back=True)), None)
            following = next(iter(take(filter_, ids, order, key, wanted=1)), None)
        with limited(COUNT_SECONDS):
            before, after = order.rows(found, key, back=True), order.rows(found, key)
            place = before.order_by()[:PLACES].count() + 1
            count = place + after.order_by()[:PLACES].count()
    except TooSlow:
        return Neighbours(previous, following, None, 0, capped=True)
    return Neighbours(
        previous=previous,
        following=following,
        place=place if place <= PLACES else None,
        count=min(count, PLACES),
        capped=count > PLACES,
    )


def _pk(rows: list[Listed]) -> int | None:
    return rows[0].pk if rows else None
