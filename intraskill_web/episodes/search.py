"""Looking through candidates of the index for the words of a search, in order, in limited time.

The index says which episodes may hold the words; here each candidate is read and either has its hit
or is passed over. When the time is over the search says how far it came, and goes on from there
when asked: nothing that matches is ever left out silently.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from intraskill_web.episodes.candidates import take
from intraskill_web.episodes.filters import EpisodeFilter
from intraskill_web.episodes.glance import Glance
from intraskill_web.episodes.limits import TooSlow, limited
from intraskill_web.episodes.listed import LISTED, Listed
from intraskill_web.episodes.order import Key, Order
from intraskill_web.episodes.words import Hit

SECONDS = 1.5  # of one page, at most
SORT_SECONDS = 0.1  # of all candidates in the order of a column
WALK_SECONDS = 0.5  # of all episodes in that order, where words are frequent
FIRST_BATCH = 64
LARGEST_BATCH = 1024


@dataclass(slots=True)
class Found:
    """Rows with their hits. ``stopped`` is the key to go on from when time was over.

    ``unread`` says that it was over before the first candidate came.
    """

    rows: list[Listed] = field(default_factory=list)
    hits: dict[int, Hit] = field(default_factory=dict)
    stopped: Key | None = None
    unread: bool = False


def search(
    filter_: EpisodeFilter,
    order: Order,
    *,
    wanted: int,
    key: Key | None = None,
    back: bool = False,
    seconds: float = SECONDS,
    first: float = SECONDS,
    among: EpisodeFilter | None = None,
) -> Found:
    """The first ``wanted`` episodes behind ``key`` that match and hold all words.

    ``first`` limits the wait for the first candidates, ``among`` is another filter that finds them.
    """
    words = filter_.words
    end = time.monotonic() + seconds
    found, last = Found(), None
    try:
        size = wanted if words.certain and among is None else max(wanted, FIRST_BATCH)
        limit = min(first, seconds)
        with Glance(words) as glance:
            for episode in _batches(
                among or filter_, order, key, back, end=end, size=size, limit=limit
            ):
                hit = glance.hit(episode)
                if hit is not None:
                    found.rows.append(episode)
                    found.hits[episode.pk] = hit
                    if len(found.rows) >= wanted:
                        return found
                last = episode
                if time.monotonic() > end:
                    break
            else:
                return found
            found.stopped = order.key(last)
    except TooSlow:
        found.stopped = order.key(last) if last else key or Key(2**62)
        found.unread = last is None
    return found


def search_sorted(
    filter_: EpisodeFilter,
    order: Order,
    *,
    wanted: int,
    key: Key | None = None,
    back: bool = False,
) -> Found:
    """The same by a column. Few candidates are sorted; where there are too many for that, words are
    so frequent that reading every episode in the order of the column soon meets enough.
    """
    found = search(filter_, order, wanted=wanted, key=key, back=back, first=SORT_SECONDS)
    if not found.unread or filter_.terms().marks:  # which the index alone knows
        return found
    plain = EpisodeFilter({k: v for k, v in filter_.values.items() if k != "q"})
    return search(
        filter_, order, wanted=wanted, key=key, back=back, seconds=WALK_SECONDS, among=plain
    )


def _batches(
    filter_: EpisodeFilter,
    order: Order,
    key: Key | None,
    back: bool,
    *,
    end: float,
    size: int,
    limit: float,
) -> Iterator[Listed]:
    while True:
        with limited(max(0.02, limit)):
            batch = take(filter_, LISTED, order, key, wanted=size, back=back)
        yield from batch
        if len(batch) < size:
            return
        key = order.key(batch[-1])
        size = min(2 * size, LARGEST_BATCH)
        limit = end - time.monotonic()
