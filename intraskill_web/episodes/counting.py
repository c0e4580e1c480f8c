"""How many episodes a filter finds, and how many of each value, at a cost with a limit.

Counting stops at COUNT_LIMIT, so that a huge list answers as fast; facets count the newest
FACET_LIMIT, and say so where there are more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from intraskill_web.episodes import candidates
from intraskill_web.episodes.filters import EpisodeFilter
from intraskill_web.episodes.limits import TooSlow, limited
from intraskill_web.episodes.listed import Listed
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.order import Order

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
_values = attrgetter(*FACETS.values())


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


def counted_rows(rows: Iterable[Listed]) -> Counted:
    """The count and facets of a list that is known whole. No query."""
    values = [_values(episode) for episode in rows]
    return Counted(len(values), capped=False, facets=_facets(values))


def counted(filter_: EpisodeFilter) -> Counted:
    """The facets of the newest FACET_LIMIT that match and, where there are more, the count."""
    words = filter_.words
    certain = not words or words.certain
    if filter_.errors:
        return Counted(0, capped=False, facets={})
    columns = Episode.objects.values_list(*FACETS.values())
    try:
        with limited(COUNT_SECONDS):
            values = candidates.take(filter_, columns, Order(), wanted=FACET_LIMIT)
            count = len(values)
            if count == FACET_LIMIT:
                count = candidates.count(filter_, COUNT_LIMIT, seconds=COUNT_SECONDS)
            if words and certain:  # bodies beyond the index are counted for every word
                certain = not filter_.beyond_index(Episode.objects.all()).order_by()[:1].exists()
    except TooSlow:
        return Counted(0, capped=True, facets={}, certain=certain, known=False)
    return Counted(
        min(count, COUNT_LIMIT),
        count > COUNT_LIMIT,
        _facets(values),
        certain,
        sampled=count > FACET_LIMIT,
    )


def _facets(values: Iterable[tuple[Any, ...]]) -> dict[str, Counter[Any]]:
    return dict(zip(FACETS, map(Counter, zip(*values, strict=True)), strict=False))
