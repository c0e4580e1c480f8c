"""One database setting from one URL; SQLite in the home folder when there is none.

SQLite runs in WAL mode with IMMEDIATE transactions: a deferred transaction that reads and then
writes fails at once when another writer was faster, whatever the timeout.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

SQLITE_OPTIONS: dict[str, Any] = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": (
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA temp_store=MEMORY;"
        " PRAGMA mmap_size=134217728; PRAGMA cache_size=-32000;"
    ),
}


def database(url: str | None, home: Path) -> dict[str, Any]:
    """The ``DATABASES`` entry for ``url``: ``postgres://…`` or ``sqlite:///path``."""
    if url is None:
        return _sqlite(home / "db.sqlite3")
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return _sqlite(Path(unquote(parts.path[1:] if parts.path.startswith("//") else parts.path)))
    if parts.scheme in ("postgres", "postgresql"):
        if find_spec("psycopg") is None:
            raise ImproperlyConfigured(
                "DATABASE_URL names a PostgreSQL, whose driver is not installed. "
                "Install it: pip install 'psycopg[binary]'"
            )
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(parts.path.lstrip("/")),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": unquote(parts.hostname or ""),
            "PORT": str(parts.port or ""),
            "CONN_MAX_AGE": 60,
            "CONN_HEALTH_CHECKS": True,
            "OPTIONS": dict(parse_qsl(parts.query)),
        }
    raise ImproperlyConfigured(
        f"DATABASE_URL must begin with postgres:// or sqlite:/// (found {parts.scheme or url!r})"
    )


def _sqlite(path: Path) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "CONN_MAX_AGE": 60,  # opening one costs as much as answering a poll
        "OPTIONS": SQLITE_OPTIONS,
    }
