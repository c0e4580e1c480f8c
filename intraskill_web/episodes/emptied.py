"""No index term outlives the episodes of an emptied database.

``manage.py flush`` empties the tables of managed models and begins their ids anew; the terms' table
(FTS5, or bits on PostgreSQL) is none of them. Terms that stayed would lead searches to the episodes
that get these ids next. Django tells of the end of a flush by ``post_migrate``.
"""

from __future__ import annotations

from typing import Any

from django.db import connections, transaction

from intraskill_web.episodes.models import Episode, SearchRow

EPISODES = Episode._meta.db_table
TERMS = SearchRow._meta.db_table


def forget_terms(using: str, **_told: Any) -> None:
    """Where there is no episode, empty the table of terms."""
    connection = connections[using]
    if not {EPISODES, TERMS} <= set(connection.introspection.table_names()):
        return  # migrated back to before they were
    with transaction.atomic(using=using), connection.cursor() as cursor:
        if _holds(cursor, EPISODES):
            return
        if connection.vendor == "sqlite":
            cursor.execute(f"INSERT INTO {TERMS}({TERMS}) VALUES ('delete-all')")
        elif _holds(cursor, TERMS):
            cursor.execute(f"LOCK TABLE {TERMS}")  # who writes episodes now has ended, or waits
            if not _holds(cursor, EPISODES):
                cursor.execute(f"TRUNCATE {TERMS}")


def _holds(cursor: Any, table: str) -> bool:
    cursor.execute(f"SELECT EXISTS (SELECT 1 FROM {table})")
    return bool(cursor.fetchone()[0])
