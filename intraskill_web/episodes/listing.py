"""One page of the episode list by key, its capped count, and an episode's neighbours in it.

Paging is by id (newest first): a page costs the same however deep it lies, and rows that arrive
while one reads do not shift what is shown. Counting stops at COUNT_LIMIT, so that a huge list
answers as fast.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import QuerySet

from intraskill_web.episodes.filters import EpisodeFilter
from intraskill_web.episodes.models import Episode

PAGE = 50
COUNT_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class ListPage:
    """``older`` and ``newer`` are the ids to page from; None where the list ends."""

    rows: list[Episode]
    older: int | None
    newer: int | None
    count: int
    capped: bool


def list_page(
    found: QuerySet[Episode], *, before: int | None = None, after: int | None = None
) -> ListPage:
    """The page of ids below ``before``, or above ``after``, or the newest. Three queries at
    most.
    """
    rows = found.select_related("experiment", "round")
    if after is not None:
        taken = list(rows.filter(pk__gt=after).order_by("pk")[: PAGE + 1])
        more_newer, taken = len(taken) > PAGE, taken[:PAGE][::-1]
        more_older = True
    else:
        if before is not None:
            rows = rows.filter(pk__lt=before)
        taken = list(rows.order_by("-pk")[: PAGE + 1])
        more_older, taken = len(taken) > PAGE, taken[:PAGE]
        more_newer = before is not None
    count = found.order_by()[: COUNT_LIMIT + 1].count()
    return ListPage(
        rows=taken,
        older=taken[-1].pk if taken and more_older else None,
        newer=taken[0].pk if taken and more_newer else None,
        count=min(count, COUNT_LIMIT),
        capped=count > COUNT_LIMIT,
    )


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The episodes before and after one in a filtered list, and its place (None beyond the cap)."""

    previous: int | None
    following: int | None
    place: int | None
    count: int
    capped: bool


def neighbours(filter_: EpisodeFilter, episode: Episode) -> Neighbours:
    """Where ``episode`` stands in the filtered list, newest first. Four queries."""
    found = filter_.apply(Episode.objects.all()).order_by()
    above = found.filter(pk__gt=episode.pk)
    below = found.filter(pk__lt=episode.pk)
    previous = above.order_by("pk").values_list("pk", flat=True).first()
    following = below.order_by("-pk").values_list("pk", flat=True).first()
    ahead = above[: COUNT_LIMIT + 1].count()
    count = found[: COUNT_LIMIT + 1].count()
    return Neighbours(
        previous=previous,
        following=following,
        place=ahead + 1 if ahead <= COUNT_LIMIT else None,
        count=min(count, COUNT_LIMIT),
        capped=count > COUNT_LIMIT,
    )
