"""The database of a home that tests run: SQLite inside it, or one of its own on PostgreSQL.

Where the tests themselves run on PostgreSQL (``DATABASE_URL``), each home gets a database on the
same server, made when first asked for and dropped when the test run ends. Every database but one
(``leave_empty``) begins as a copy of one that was migrated once a run: migrating takes 6 s of CPU.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import psycopg

RUN = "INTRASKILL_TEST_RUN"  # names the databases of one test run, whichever worker makes them
ROOT = Path(__file__).resolve().parents[1]
EMPTY_TEMPLATE = "template0"
Row = tuple[object, ...]

_left_empty: set[Path] = set()


class NotMadeYet(Exception):
    """The database or its tables are not there."""


def on_postgres() -> bool:
    """Whether homes have their databases on a PostgreSQL server."""
    return _server() is not None


def begin_run() -> None:
    """Name this test run; workers that are started after this inherit the name."""
    os.environ.setdefault(RUN, secrets.token_hex(4))


def end_run() -> None:
    """Drop the databases of every home of this test run, and what they were copied from."""
    shutil.rmtree(_template_folder(), ignore_errors=True)
    if not on_postgres():
        return
    with _connect() as link:
        found = link.execute(
            "SELECT datname FROM pg_database WHERE datname LIKE %s", (f"home_{os.environ[RUN]}_%",)
        ).fetchall()
        for (name,) in found:
            link.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def leave_empty(home: Path) -> None:
    """Let ``home`` make its own tables at its start, as that of a new user does."""
    _left_empty.add(home)


def address(home: Path) -> dict[str, str]:
    """What the environment of a command says of the database of ``home``: nothing for SQLite."""
    server = _server()
    if server is not None:
        return {"DATABASE_URL": _url(server, _made(home))}
    if home not in _left_empty and not (home / "db.sqlite3").exists():
        home.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_sqlite_template(), home / "db.sqlite3")
    return {}


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
    with _connect(_made(home)) as server, server.transaction(force_rollback=True):
        server.execute("LOCK TABLE experiments_attempt IN EXCLUSIVE MODE")
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
    template = EMPTY_TEMPLATE if home in _left_empty else _postgres_template()
    with _connect() as link:
        if not link.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone():
            # nobody is ever connected to a template, so two may be copied at once
            link.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    return name


@cache
def _sqlite_template() -> Path:
    with _first_of_all_workers() as done:
        file = _template_folder() / "db.sqlite3"
        if not done.exists():
            _migrate(_template_folder())
            with sqlite3.connect(file) as link:  # all of it in the one file that is copied
                link.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            done.touch()
        return file


@cache
def _postgres_template() -> str:
    server, name = _server(), f"home_{os.environ[RUN]}_template"
    assert server is not None
    with _first_of_all_workers() as done:
        if not done.exists():
            with _connect() as link:
                link.execute(f'CREATE DATABASE "{name}" TEMPLATE {EMPTY_TEMPLATE}')
            _migrate(_template_folder(), DATABASE_URL=_url(server, name))
            done.touch()
    return name


@contextmanager
def _first_of_all_workers() -> Iterator[Path]:
    """Hold the template; the file given is there once a worker has made it."""
    folder = _template_folder()
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder / "done"


def _template_folder() -> Path:
    return Path(tempfile.gettempdir()) / f"intraskill-template-{os.environ[RUN]}"


def _migrate(home: Path, **more: str) -> None:
    outside = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "REDIS_URL")}
    settings = {"INTRASKILL_HOME": str(home), "DJANGO_SETTINGS_MODULE": "intraskill_web.settings"}
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "--verbosity", "0", "--skip-checks"],
        cwd=ROOT,
        env={**outside, **settings, **more},
        check=True,
        timeout=300,
    )
