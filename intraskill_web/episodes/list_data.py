"""Episodes as data: the fields of JSON, CSV, JSON lines and Parquet, in one place."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from django.urls import reverse

from intraskill_web.core.tables import Column, Table
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.words import Hit

LIST_FIELDS = (
    "id", "episode_id", "purpose", "arm", "step", "group_index", "sample_id", "task_id", "split",
    "treatment_mode", "skill_ids", "reward", "success", "scored", "outcome", "termination",
    "turns", "tokens", "invalid_actions", "protocol_errors", "advantage", "admitted", "triage",
    "category", "checkpoint", "instruction",
)  # fmt: skip
_values = attrgetter(*LIST_FIELDS)


def episode_data(episode: Episode) -> dict[str, Any]:
    """A row for JSON and CSV."""
    return dict(zip(LIST_FIELDS, _values(episode), strict=True)) | {
        "experiment": episode.experiment.name,
        "round": episode.round.number if episode.round else None,
        "url": f"{reverse('episodes:list')}{episode.pk}/",
    }


def hit_data(hit: Hit | None) -> dict[str, Any] | None:
    """Where the words were found, for JSON."""
    if hit is None:
        return None
    return {
        "turn": hit.turn,
        "role": hit.role,
        "before": hit.before,
        "match": hit.match,
        "after": hit.after,
    }


def columns() -> list[str]:
    """The columns of CSV and Parquet."""
    return ["experiment", "round", *LIST_FIELDS, "url"]


def table(rows: list[dict[str, Any]]) -> Table:
    """Rows as a table, lists as words."""
    flat = [row | {"skill_ids": " ".join(map(str, row["skill_ids"]))} for row in rows]
    return Table("episodes", [Column(name, name) for name in columns()], flat)
