"""Querysets that are compiled once: for the few questions that every request asks.

Building SQL costs Django far more time than the database needs to answer it. What asks the same
question with other values at each request says it once, with ``Value`` in their places.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models import QuerySet

FIRST = 1_986_300_001  # whole numbers that no row of ours has, in the places of values
PARAMETER = "fixed_"  # begins the names of parameters that are always the same


class Prepared:
    """``build`` is given a stand-in for each name and returns the queryset to compile.

    Whole numbers and texts can stand in; ``kinds`` says which is which.
    """

    def __init__(
        self, build: Callable[..., QuerySet[Any, Any]], kinds: Mapping[str, type[int] | type[str]]
    ) -> None:
        self._build, self._kinds = build, kinds
        self._ready: dict[str, tuple[str, dict[str, Any]]] = {}

    def sql(self, **values: Any) -> tuple[str, dict[str, Any]]:
        """The SQL and its parameters by name for these values; compiled at the first call.

        For parameters without names Django searches the whole text at each call.
        """
        if connection.vendor not in self._ready:
            marks: dict[str, Any] = {
                name: FIRST + i if kind is int else f"\x01{name}"
                for i, (name, kind) in enumerate(self._kinds.items())
            }
            sql, params = self._build(**marks).query.sql_with_params()
            sql = sql.replace("%%", "%%%%")
            names = {mark: name for name, mark in marks.items()}
            places = [names.get(param, f"{PARAMETER}{i}") for i, param in enumerate(params)]
            fixed = dict(zip(places, params, strict=True))
            self._ready[connection.vendor] = (sql % tuple(f"%({name})s" for name in places), fixed)
        sql, fixed = self._ready[connection.vendor]
        return sql, fixed | values

    def row(self, **values: Any) -> tuple[Any, ...] | None:
        """The first row as the driver gives it, or None."""
        with connection.cursor() as cursor:
            cursor.execute(*self.sql(**values))
            found: tuple[Any, ...] | None = cursor.fetchone()
            return found

    def rows(self, **values: Any) -> list[tuple[Any, ...]]:
        """All rows as the driver gives them."""
        with connection.cursor() as cursor:
            cursor.execute(*self.sql(**values))
            return list(cursor.fetchall())


def moment(value: Any) -> datetime | None:
    """A point in time as the ORM gives it, from what a driver gives: SQLite has no zones."""
    if value is None:
        return None
    found = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
