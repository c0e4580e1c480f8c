"""Episodes into the index: bodies, rows and index terms of a batch in one transaction.

Rows are written past the ORM's objects, which would cost more than all the rest. Ids are never
used twice, so a term left behind by a deleted row can never lead to another episode.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection, transaction

from intraskill_web.episodes import bodies, postings
from intraskill_web.episodes.models import Episode, SearchRow
from intraskill_web.episodes.prepare import Prepared

TABLE = Episode._meta.db_table
SEARCH = SearchRow._meta.db_table
COLUMNS = [f.attname for f in Episode._meta.concrete_fields]


def publish(
    prepared: Sequence[Prepared],
    shared: Mapping[str, Any],
    masks: Mapping[str, int] | None = None,
) -> None:
    """Write a batch. ``shared`` are columns of all its rows, such as ``experiment_id``.

    An entry without a body is a row whose trace is read from its file. ``masks`` are the terms of
    the batch as PostgreSQL takes them, where they were made already.
    """
    if not prepared:
        return
    with transaction.atomic():
        first = _ids(len(prepared))
        rows = [_row(entry.values, shared, first + i) for i, entry in enumerate(prepared)]
        _place(prepared, rows)
        with connection.cursor() as cursor:
            _insert(cursor, rows)
            if connection.vendor == "postgresql":
                if masks is None:
                    masks = postings.invert(entry.terms for entry in prepared)
                postings.write(cursor, first, masks)
            else:
                index = [(first + i, entry.terms) for i, entry in enumerate(prepared)]
                cursor.executemany(f"INSERT INTO {SEARCH}(rowid, terms) VALUES (%s, %s)", index)


def remove(experiment_id: int, path: str) -> int:
    """Delete the rows of a file; returns how many."""
    return Episode.objects.filter(experiment_id=experiment_id, path=path).delete()[0]


def optimise() -> None:
    """After much was written: fresh statistics, without which a planner scans (MLflow's lesson)."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA analysis_limit = 4000")
            cursor.execute(f"ANALYZE {TABLE}")
        else:
            cursor.execute(f"ANALYZE {TABLE}")
            cursor.execute(f"ANALYZE {SEARCH}")


def _ids(count: int) -> int:
    """The first of ``count`` ids in a row that no row ever had."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":  # the transaction holds the write lock
            cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [TABLE])
            found = cursor.fetchone()
            return (found[0] if found else 0) + 1
        # one statement of this kind at a time, so that the ids are in a row
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [TABLE])
        cursor.execute("SELECT pg_get_serial_sequence(%s, 'id')", [TABLE])
        (sequence,) = cursor.fetchone()
        cursor.execute("SELECT nextval(%s)", [sequence])
        first = int(cursor.fetchone()[0])
        if count >= postings.IDS // 2:  # a segment of terms of its own is copied, not merged
            first = -(-first // postings.IDS) * postings.IDS
        cursor.execute("SELECT setval(%s, %s)", [sequence, first + count - 1])
        return first


def _row(values: Mapping[str, Any], shared: Mapping[str, Any], row_id: int) -> list[Any]:
    """The columns of a row as the database takes them; the body's place is noted later."""
    whole = {"body_at": 0, "body_size": 0, "behaviour": {}, **values, **shared, "id": row_id}
    for name in ("skill_ids", "behaviour"):
        whole[name] = json.dumps(whole[name])
    if connection.vendor == "sqlite" and whole.get("started_at") is not None:
        whole["started_at"] = connection.ops.adapt_datetimefield_value(whole["started_at"])
    return [whole.get(name) for name in COLUMNS]


def _place(prepared: Sequence[Prepared], rows: list[list[Any]]) -> None:
    """Append the bodies and note their places in the rows."""
    columns = [COLUMNS.index(name) for name in ("pack", "body_at", "body_size")]
    held = [(row, e.body) for row, e in zip(rows, prepared, strict=True) if e.body is not None]
    for (row, _body), place in zip(held, bodies.append([b for _, b in held]), strict=True):
        for column, value in zip(columns, place, strict=True):
            row[column] = value


def _insert(cursor: Any, rows: list[list[Any]]) -> None:
    names = ", ".join(f'"{name}"' for name in COLUMNS)
    if connection.vendor == "postgresql":
        with cursor.copy(f"COPY {TABLE} ({names}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        return
    marks = ", ".join(["%s"] * len(COLUMNS))
    cursor.executemany(f"INSERT INTO {TABLE} ({names}) VALUES ({marks})", rows)
