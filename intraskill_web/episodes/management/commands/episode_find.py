"""``manage.py episode_find QUERY``: episodes by words and filters, newest first.

A query is words, searched in everything that was said, and filters ``key:value`` with the keys of
the episode list, such as ``outcome:failure round:0 vintage bottle``.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.urls import reverse

from intraskill_web.core.commands import JsonCommand, experiment_named
from intraskill_web.episodes.candidates import take
from intraskill_web.episodes.counting import COUNT_LIMIT, counted
from intraskill_web.episodes.filters import EpisodeFilter
from intraskill_web.episodes.listed import LISTED, Listed
from intraskill_web.episodes.order import Order
from intraskill_web.episodes.query import parse_query
from intraskill_web.episodes.search import search
from intraskill_web.episodes.words import Hit
from trainer.errors import InputError

SNIPPET = 160
SECONDS = 30.0


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
        counting = counted(filter_)
        total, hits = counting.count + counting.capped, {}
        if filter_.words:
            looked = search(filter_, Order(), wanted=limit + 1, seconds=SECONDS)
            rows, hits = looked.rows[:limit], looked.hits
            if len(looked.rows) <= limit and looked.stopped is None:
                total = len(looked.rows)
        else:
            rows = take(filter_, LISTED, Order(), wanted=limit)
        self.emit(
            {
                "total": min(total, COUNT_LIMIT),
                "capped": total > COUNT_LIMIT,
                "more": total > len(rows),
                "results": [_result(row, hits.get(row.pk)) for row in rows],
            },
            "\n".join(f"{r.episode_id}  {r.instruction[:80]}" for r in rows) or "nothing found",
        )
        return True


def _result(row: Listed, hit: Hit | None) -> dict[str, Any]:
    return {
        "id": row.pk,
        "episode_id": row.episode_id,
        "task_id": row.task_id,
        "split": row.split,
        "treatment": row.treatment_mode,
        "reward": row.reward,
        "success": row.success,
        "snippet": _snippet(row, hit),
        "turn": hit.turn if hit else None,
        "url": reverse("episodes:detail", args=[row.pk]) + (f"#t{hit.turn}" if hit else ""),
    }


def _snippet(row: Listed, hit: Hit | None) -> str:
    return f"{hit.before}{hit.match}{hit.after}" if hit else row.instruction[:SNIPPET]
