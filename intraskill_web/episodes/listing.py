"""One page of the episode list by key: it costs the same however deep it lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from intraskill_web.episodes.candidates import take
from intraskill_web.episodes.filters import EpisodeFilter
from intraskill_web.episodes.listed import LISTED, Listed
from intraskill_web.episodes.order import Key, Order
from intraskill_web.episodes.search import Found, search, search_sorted
from intraskill_web.episodes.words import Hit

PAGE = 50


@dataclass(frozen=True, slots=True)
class ListPage:
    """``older`` and ``newer`` are the keys to page from; None where the list ends.

    ``stopped`` says that time was over while looking through texts: ``older`` goes on from there.
    ``order`` is the one they stand in: newest first where too many hits would have to be sorted.
    """

    rows: list[Listed]
    older: Key | None
    newer: Key | None
    order: Order
    hits: Mapping[int, Hit] = field(default_factory=dict)
    stopped: bool = False

    @property
    def whole(self) -> bool:
        """Whether this page is the whole list."""
        return self.older is None and self.newer is None


def list_page(
    filter_: EpisodeFilter,
    order: Order,
    *,
    before: Key | None = None,
    after: Key | None = None,
) -> ListPage:
    """The page behind ``before``, or in front of ``after``, or the first."""
    back = after is not None
    key = after or before
    if filter_.words and not filter_.errors:
        found, order = _hits(filter_, order, key, back=back)
    else:
        found = Found(take(filter_, LISTED, order, key, wanted=PAGE + 1, back=back))
    taken, more = found.rows[:PAGE], len(found.rows) > PAGE or found.stopped is not None
    if back:
        taken.reverse()
    first, last = (order.key(taken[0]), order.key(taken[-1])) if taken else (key, key)
    if found.stopped is not None:
        first, last = (found.stopped, last) if back else (first, found.stopped)
    return ListPage(
        rows=taken,
        older=last if more or back else None,
        newer=first if (more if back else key is not None) else None,
        order=order,
        hits=found.hits,
        stopped=found.stopped is not None,
    )


def _hits(
    filter_: EpisodeFilter, order: Order, key: Key | None, *, back: bool
) -> tuple[Found, Order]:
    """A page of hits and the order that they are in. A key without a value goes on newest first."""
    if order.column and (key is None or key.value is not None):
        found = search_sorted(filter_, order, wanted=PAGE + 1, key=key, back=back)
        if key is not None or not found.unread:
            return found, order
    return search(filter_, Order(), wanted=PAGE + 1, key=key, back=back), Order()
