"""``manage.py episode_find QUERY``: episodes by words and filters, newest first.

A query is words, searched in the instruction and the episode id, and filters ``key:value`` with the
keys of the episode list, such as ``outcome:failure round:0 vintage bottle``.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.http import QueryDict
from django.urls import reverse

from intraskill_web.core.commands import JsonCommand, experiment_named
from intraskill_web.episodes.filters import PARAMETERS, EpisodeFilter
from intraskill_web.episodes.listing import COUNT_LIMIT
from intraskill_web.episodes.models import Episode
from trainer.errors import InputError

SNIPPET = 160


class Command(JsonCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("query")
        parser.add_argument("--experiment")
        parser.add_argument("--limit", type=int, default=20)

    def run(self, **options: Any) -> bool:
        """Print the total (counted up to a cap), whether there is more, and the first results."""
        limit = options["limit"]
        if limit < 1:
            raise InputError(
                "must be at least 1", field="--limit", value=limit, remedy="Give a positive number"
            )
        query = parse_query(options["query"])
        if options["experiment"]:
            query["experiment"] = experiment_named(options["experiment"]).name
        filter_ = EpisodeFilter.of(query)
        if filter_.errors:
            raise InputError("; ".join(filter_.errors), field="query", value=options["query"])
        found = filter_.apply(Episode.objects.order_by("-pk"))
        total = found.order_by()[: COUNT_LIMIT + 1].count()
        rows = list(found[:limit])
        self.emit(
            {
                "total": min(total, COUNT_LIMIT),
                "capped": total > COUNT_LIMIT,
                "more": total > len(rows),
                "results": [_result(row) for row in rows],
            },
            "\n".join(f"{r.episode_id}  {r.instruction[:80]}" for r in rows) or "nothing found",
        )
        return True


def parse_query(text: str) -> QueryDict:
    """Words and ``key:value`` filters as the parameters of the episode list."""
    query = QueryDict(mutable=True)
    words = []
    for word in text.split():
        key, colon, value = word.partition(":")
        if colon and key in PARAMETERS:
            query[key] = value
        else:
            words.append(word)
    if words:
        query["q"] = " ".join(words)
    return query


def _result(row: Episode) -> dict[str, Any]:
    return {
        "id": row.pk,
        "episode_id": row.episode_id,
        "task_id": row.task_id,
        "split": row.split,
        "treatment": row.treatment_mode,
        "reward": row.reward,
        "success": row.success,
        "snippet": row.instruction[:SNIPPET],
        "url": reverse("episodes:detail", args=[row.pk]),
    }
