"""An episode as lists, JSON and search need it: the columns of its row, in a tuple.

A page has fifty of them, whose model objects cost more than their query. ``LISTED`` is the queryset
of them all, to be filtered as any other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.db.models.expressions import RawSQL
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


COLUMNS = Listed._fields[:-2]
MOST_ID = 2**63 - 1
YES_NO = tuple(Listed._fields.index(name) for name in ("success", "scored", "admitted"))
SKILLS = Listed._fields.index("skill_ids")


class _Tuples(ValuesListIterable):  # type: ignore[type-arg]
    def __iter__(self) -> Iterator[Listed]:
        return map(Listed._make, super().__iter__())


def _listed() -> QuerySet[Episode, Listed]:
    """Names by key and not by a join, in which a database might see another way to go."""
    own = Episode._meta.db_table
    name = f"SELECT name FROM {Experiment._meta.db_table} e WHERE e.id = {own}.experiment_id"
    number = f"SELECT number FROM {Round._meta.db_table} r WHERE r.id = {own}.round_id"
    rows: Any = Episode.objects.values_list(*COLUMNS, RawSQL(name, ()), RawSQL(number, ()))
    rows._iterable_class = _Tuples
    found: QuerySet[Episode, Listed] = rows
    return found


LISTED = _listed()
ONE = Prepared(lambda pk: LISTED.filter(pk=pk), {"pk": int})


def listed(pk: int) -> Listed | None:
    """The episode of that id, or None. One query, prepared."""
    row: Sequence[Any] | None = ONE.row(pk=pk) if pk <= MOST_ID else None
    if row is None:
        return None
    values = list(row)
    values[SKILLS] = json.loads(values[SKILLS])
    for place in YES_NO:  # SQLite has numbers
        values[place] = None if values[place] is None else bool(values[place])
    return Listed._make(values)
