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
) -> Found:
    """The first ``wanted`` episodes behind ``key`` that match and hold all words."""
    words = filter_.words
    end = time.monotonic() + seconds
    found, last = Found(), None
    try:
        first = wanted if words.certain else max(wanted, FIRST_BATCH)
        with Glance(words) as glance:
            for episode in _batches(filter_, order, key, back, end=end, size=first):
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


def _batches(
    filter_: EpisodeFilter,
    order: Order,
    key: Key | None,
    back: bool,
    *,
    end: float,
    size: int,
) -> Iterator[Listed]:
    while True:
        with limited(max(0.02, end - time.monotonic())):
            batch = take(filter_, LISTED, order, key, wanted=size, back=back)
        yield from batch
        if len(batch) < size:
            return
        key = order.key(batch[-1])
        size = min(2 * size, LARGEST_BATCH)
