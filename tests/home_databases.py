"""The database of a home that tests run: SQLite inside it, or one of its own on PostgreSQL.

Where the tests themselves run on PostgreSQL (``DATABASE_URL``), each home gets a database on the
same server, made when first asked for and dropped when the test run ends.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import psycopg

RUN = "INTRASKILL_TEST_RUN"  # names the databases of one test run, whichever worker makes them
Row = tuple[object, ...]


class NotMadeYet(Exception):
    """The database or its tables are not there."""


def on_postgres() -> bool:
    """Whether homes have their databases on a PostgreSQL server."""
    return _server() is not None


def begin_run() -> None:
    """Name this test run; workers that are started after this inherit the name."""
    os.environ.setdefault(RUN, secrets.token_hex(4))


def end_run() -> None:
    """Drop the databases of every home of this test run."""
    if not on_postgres():
        return
    with _connect() as link:
        found = link.execute(
            "SELECT datname FROM pg_database WHERE datname LIKE %s", (f"home_{os.environ[RUN]}_%",)
        ).fetchall()
        for (name,) in found:
            link.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def address(home: Path) -> dict[str, str]:
    """What the environment of a command says of the database of ``home``: nothing for SQLite."""
    server = _server()
    return {} if server is None else {"DATABASE_URL": _url(server, _made(home))}


def rows(home: Path, query: str, *values: object) -> list[Row]:
    """Rows of a home's database, read while others write. Raises NotMadeYet."""
    if _server() is None:
        try:
            with sqlite3.connect(_read_only(home), uri=True, timeout=30) as link:
                return link.execute(query, values).fetchall()
        except sqlite3.OperationalError as error:
            raise NotMadeYet(str(error)) from error
    from psycopg import OperationalError
    from psycopg.errors import UndefinedTable

    try:
        with _connect(_made(home)) as link:
            return list(link.execute(query.replace("?", "%s"), values).fetchall())
    except (OperationalError, UndefinedTable) as error:
        raise NotMadeYet(str(error)) from error


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """While the block runs, whoever wants to write attempts of this home has to wait."""
    if _server() is None:
        with sqlite3.connect(home / "db.sqlite3", timeout=30, isolation_level=None) as link:
            link.execute("BEGIN IMMEDIATE")
            yield
            link.execute("ROLLBACK")
        return
    with _connect(_made(home)) as link, link.transaction(force_rollback=True):
        link.execute("LOCK TABLE experiments_attempt IN EXCLUSIVE MODE")
        yield


def _read_only(home: Path) -> str:
    return f"file:{home / 'db.sqlite3'}?mode=ro"


def _server() -> str | None:
    url = os.environ.get("DATABASE_URL", "")
    return url if url.startswith(("postgres://", "postgresql://")) else None


def _url(server: str, name: str) -> str:
    return urlsplit(server)._replace(path=f"/{name}").geturl()


def _connect(name: str | None = None) -> psycopg.Connection[Any]:
    import psycopg

    server = _server()
    assert server is not None
    return psycopg.connect(_url(server, name) if name else server, autocommit=True)


@cache
def _made(home: Path) -> str:
    """The name of the home's database, which is there from now on."""
    name = f"home_{os.environ[RUN]}_{hashlib.sha256(str(home).encode()).hexdigest()[:12]}"
    with _connect() as link:
        if not link.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone():
            # template0: nobody is ever connected to it, so two may be made at once
            link.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
    return name
