"""Episodes as data: the fields of JSON, CSV, JSON lines and Parquet, in one place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from django.urls import get_script_prefix, reverse

from intraskill_web.core.tables import Column, Table
from intraskill_web.episodes.listed import Listed
from intraskill_web.episodes.words import Hit

LIST_FIELDS = Listed._fields[: Listed._fields.index("instruction") + 1]


def episode_data(rows: Iterable[Listed]) -> Iterator[dict[str, Any]]:
    """Rows for JSON and CSV."""
    home = _home(get_script_prefix())
    for row in rows:
        data: dict[str, Any] = dict(zip(LIST_FIELDS, row, strict=False))
        data["experiment"], data["round"] = row.experiment, row.round
        data["url"] = f"{home}{row.id}/"
        yield data


@cache
def _home(prefix: str) -> str:
    """The address of the list, which every episode's begins with; ``prefix`` is the server's."""
    return reverse("episodes:list")


def hit_data(hit: Hit | None) -> dict[str, Any] | None:
    """Where the words were found, for JSON."""
    return None if hit is None else hit._asdict()


def columns() -> list[str]:
    """The columns of CSV and Parquet."""
    return ["experiment", "round", *LIST_FIELDS, "url"]


def table(rows: list[dict[str, Any]]) -> Table:
    """Rows as a table, lists as words."""
    flat = [row | {"skill_ids": " ".join(map(str, row["skill_ids"]))} for row in rows]
    return Table("episodes", [Column(name, name) for name in columns()], flat)
