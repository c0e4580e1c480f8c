"""An episode as lists, JSON and search need it: the columns of its row, in a tuple.

A page has fifty of them, whose model objects cost more than their query. ``LISTED`` is the queryset
of them all, to be filtered as any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import orjson
from django.db.models import Expression, QuerySet, TextField
from django.db.models.query import ValuesListIterable

from intraskill_web.core.prepared import Prepared
from intraskill_web.episodes.models import Episode
from intraskill_web.experiments.models import Experiment, Round


class Listed(NamedTuple):
    """Columns of ``Episode`` under their names, then what the row refers to."""

    id: int
    episode_id: str
    purpose: str
    arm: str
    step: int | None
    group_index: int | None
    sample_id: int
    task_id: int
    split: str
    treatment_mode: str
    skill_ids: list[str]
    reward: float | None
    success: bool | None
    scored: bool
    outcome: str
    termination: str
    turns: int
    tokens: int | None
    invalid_actions: int
    protocol_errors: int
    advantage: float | None
    admitted: bool | None
    triage: str
    category: str
    checkpoint: str
    instruction: str
    skill_count: int
    experiment_id: int
    path: str
    line: int
    pack: int | None
    body_at: int
    body_size: int
    experiment: str  # its name
    round: int | None  # its number

    @property
    def pk(self) -> int:
        """The id, by the name that rows of any model have."""
        return self.id

    @classmethod
    def of(cls, row: Sequence[Any]) -> Listed:
        """A row as any driver gives it: lists are JSON, and SQLite's booleans are numbers."""
        values = list(row)
        values[SKILLS] = orjson.loads(values[SKILLS])
        for place in NUMBERS:
            if values[place] is not None:
                values[place] = bool(values[place])
        return cls._make(values)


COLUMNS = Listed._fields[:-2]
NUMBERS = tuple(Listed._fields.index(name) for name in ("success", "scored", "admitted"))
SKILLS = Listed._fields.index("skill_ids")


class _Columns(Expression):
    """All columns in one expression, because Django compiles each of many at a cost.

    Names are found by key and not by a join, in which a database might see another way to go.
    """

    def __init__(self) -> None:
        super().__init__(output_field=TextField())

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:  # type: ignore[override]
        return SELECTED, []


def _selected() -> str:
    own, ids = Episode._meta.db_table, ("experiment_id", "round_id")
    columns = [f"{own}.{name}" for name in COLUMNS]
    for model, key, name in ((Experiment, ids[0], "name"), (Round, ids[1], "number")):
        table = model._meta.db_table
        columns.append(f"(SELECT found.{name} FROM {table} found WHERE found.id = {own}.{key})")
    return ", ".join(columns)


class _Tuples(ValuesListIterable):  # type: ignore[type-arg]
    """Rows past Django's converters, which are called for each value."""

    def __iter__(self) -> Iterator[Listed]:
        compiler = self.queryset.query.get_compiler(self.queryset.db)
        chunks = compiler.execute_sql(chunked_fetch=self.chunked_fetch, chunk_size=self.chunk_size)
        return map(Listed.of, chain.from_iterable(chunks))


def _listed() -> QuerySet[Episode, Listed]:
    rows: Any = Episode.objects.values_list(_Columns())
    rows._iterable_class = _Tuples
    found: QuerySet[Episode, Listed] = rows
    return found


SELECTED = _selected()
LISTED = _listed()
ONE = Prepared(lambda pk: LISTED.filter(pk=pk), {"pk": int})


def listed(pk: int) -> Listed | None:
    """The episode of that id, or None. One query, prepared."""
    row = ONE.row(pk=pk)
    return None if row is None else Listed.of(row)
