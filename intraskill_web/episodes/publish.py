"""Episodes into the index: bodies, rows and index terms of a batch in one transaction.

Rows are written past the ORM's objects, which would cost more than all the rest. No other episode
ever gets an id again, so a term left behind by a deleted row can never lead to another one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, pairwise
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet

from intraskill_web.episodes import bodies, postings
from intraskill_web.episodes.models import Episode, Replay, SearchRow
from intraskill_web.episodes.prepare import Prepared

TABLE = Episode._meta.db_table
SEARCH = SearchRow._meta.db_table
COLUMNS = [f.attname for f in Episode._meta.concrete_fields]
SAME = ("episode_id", "task_id", "sample_id", "skill_ids")  # of an episode that is found again
MOST_IDS = 500  # in one statement
LOG = logging.getLogger(__name__)


def publish(
    prepared: Sequence[Prepared],
    shared: Mapping[str, Any],
    masks: Mapping[str, int] | None = None,
    kept: Mapping[int, int] | None = None,
) -> None:
    """Write a batch. ``shared`` are columns of all its rows, such as ``experiment_id``.

    An entry without a body is a row whose trace is read from its file. ``masks`` are the terms of
    the batch as PostgreSQL takes them, where they were made already. ``kept`` are the ids of
    entries, by their place in the batch, whose rows are made anew (``replaced``).
    """
    if not prepared:
        return
    kept = kept or {}
    with transaction.atomic():
        fresh = count(_ids(len(prepared) - len(kept))) if len(kept) < len(prepared) else count()
        ids = [kept[i] if i in kept else next(fresh) for i in range(len(prepared))]
        rows = [_row(entry.values, shared, pk) for entry, pk in zip(prepared, ids, strict=True)]
        _place(prepared, rows)
        with connection.cursor() as cursor:
            _drop(cursor, list(kept.values()))
            _insert(cursor, rows)
            if connection.vendor == "postgresql":
                if masks is None:
                    masks = postings.invert(entry.terms for entry in prepared)
                for start, stop in _runs(ids):
                    part = masks if stop - start == len(ids) else postings.part(masks, start, stop)
                    new = kept.keys().isdisjoint(range(start, stop))
                    postings.write(cursor, ids[start], part, new=new)
            else:
                index = [(pk, entry.terms) for pk, entry in zip(ids, prepared, strict=True)]
                cursor.executemany(f"INSERT INTO {SEARCH}(rowid, terms) VALUES (%s, %s)", index)


def replaced(
    prepared: Sequence[Prepared], experiment_id: int, path: str, first: int, end: int | None
) -> dict[int, int]:
    """What a file's lines from ``first`` up to ``end`` were before, now that they are ``prepared``.

    The ids of episodes that still stand in their line, by their place in the batch; rows of others
    are deleted with what hangs on them.
    """
    rows = Episode.objects.filter(experiment_id=experiment_id, path=path, line__gte=first)
    if end is not None:
        rows = rows.filter(line__lt=end)
    before = {line: (pk, same) for line, pk, *same in rows.values_list("line", "pk", *SAME)}
    if not before:
        return {}
    kept = {}
    for i, entry in enumerate(prepared):
        pk, same = before.get(entry.values["line"], (0, []))
        if same == [entry.values[name] for name in SAME]:
            kept[i] = pk
    gone = sorted({pk for pk, _same in before.values()} - set(kept.values()))
    for at in range(0, len(gone), MOST_IDS):
        forget(Episode.objects.filter(pk__in=gone[at : at + MOST_IDS]))
    return kept


def forget(rows: QuerySet[Episode]) -> None:
    """Delete episodes. Replays go with them, never without a word: their files stay."""
    for replay in Replay.objects.filter(episode__in=rows).select_related("episode"):
        LOG.warning(
            "%s, line %d is gone, and with it the replay whose files are in %s",
            replay.episode.path, replay.episode.line, replay.folder,
        )  # fmt: skip
    rows.delete()


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


def _runs(ids: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The parts of ``ids`` that are in a row, as places from and up to."""
    breaks = [i for i in range(1, len(ids)) if ids[i] != ids[i - 1] + 1]
    yield from pairwise([0, *breaks, len(ids)])


def _drop(cursor: Any, ids: Sequence[int]) -> None:
    """Make room for rows that come back in this transaction, whose replays stay therefore."""
    for at in range(0, len(ids), MOST_IDS):
        some = ids[at : at + MOST_IDS]
        cursor.execute(f"DELETE FROM {TABLE} WHERE id IN ({', '.join(['%s'] * len(some))})", some)


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
