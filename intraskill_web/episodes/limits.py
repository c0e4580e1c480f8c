"""A time limit on what a page asks of the database, so that no search keeps a server busy."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError, OperationalError, connection, transaction

OPERATIONS = 20_000  # of SQLite's machine between two looks at the clock


class TooSlow(Exception):
    """The database did not answer in time."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Statements in here that run longer than ``seconds`` in all raise TooSlow."""
    if connection.vendor == "sqlite":
        with _limited_sqlite(seconds):
            yield
        return
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {int(seconds * 1000)}")
            yield
            cursor.execute("SET LOCAL statement_timeout = 0")
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) == "57014":  # query_canceled
            raise TooSlow from error
        raise


@contextmanager
def _limited_sqlite(seconds: float) -> Iterator[None]:
    end = time.monotonic() + seconds
    connection.ensure_connection()
    handle = connection.connection
    handle.set_progress_handler(lambda: int(time.monotonic() > end), OPERATIONS)
    try:
        yield
    except DatabaseError as error:
        if "interrupted" in str(error):
            raise TooSlow from error
        raise
    finally:
        handle.set_progress_handler(None, 0)
