"""Databases of tests: which tests use one, and how one is emptied at a fraction of a flush's cost.

After a test that commits, Django empties every table and then makes content types, permissions and
roles again: a quarter of a second, for rows that hardly any test touches. Here these rows stay,
and only where a test changed them are they made anew. What other tables hold is deleted as before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import TransactionTestCase

# A test that asks for one of these works with a database: that of the tests or that of a home.
FIXTURES = frozenset(
    {"db", "transactional_db", "django_db_setup", "live_server", "homes", "undisturbed"}
)
COMMIT = frozenset({"transactional_db", "live_server"})  # their tests are undone by emptying
WITHOUT = ("tests/trainer/", "tests/contracts/")  # `make test-postgres` leaves these out
MADE_BY_MIGRATE = (  # what these say, without the keys, which a flush gives anew
    "SELECT app_label, model FROM django_content_type ORDER BY 1, 2",
    "SELECT t.app_label, t.model, p.codename, p.name FROM auth_permission p"
    " JOIN django_content_type t ON t.id = p.content_type_id ORDER BY 1, 2, 3",
    "SELECT g.name, t.app_label, p.codename FROM auth_group g"
    " LEFT JOIN auth_group_permissions m ON m.group_id = g.id"
    " LEFT JOIN auth_permission p ON p.id = m.permission_id"
    " LEFT JOIN django_content_type t ON t.id = p.content_type_id ORDER BY 1, 2, 3",
)
NOT_EMPTIED = {
    "django_content_type", "auth_permission", "auth_group", "auth_group_permissions",
    "django_migrations",
}  # fmt: skip


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark every test that works with a database, so that PostgreSQL can be asked for those.

    What is not to commit is marked for pytest-django too, which looks for that before anything
    runs: so there are tables although only a module's rows (``made``) were asked for, and what a
    test or its fixtures change in these is undone after it.
    """
    for item in items:
        asked = set(getattr(item, "fixturenames", ()))
        if not item.get_closest_marker("django_db") and not FIXTURES & asked:
            continue
        if item.nodeid.startswith(WITHOUT):
            raise pytest.UsageError(f"{item.nodeid}: tests with a database belong elsewhere")
        marked = item.get_closest_marker("django_db")
        if "django_db_setup" in asked and not marked and not COMMIT & asked:
            item.add_marker("django_db")
        item.add_marker("database")


def use_the_quick_way(patch: pytest.MonkeyPatch) -> None:
    """Empty the database so after each test that commits; call it once the database is made."""
    made = _made_by_migrate()
    flush = TransactionTestCase._fixture_teardown  # type: ignore[attr-defined]

    def teardown(case: Any) -> None:
        if _made_by_migrate() == made:
            _empty()
        else:
            flush(case)
        assert _made_by_migrate() == made, "roles and permissions are not what they were"

    patch.setattr(TransactionTestCase, "_fixture_teardown", teardown)


def _made_by_migrate() -> list[list[tuple[Any, ...]]]:
    return [_rows(query) for query in MADE_BY_MIGRATE]


def _rows(query: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


def _empty() -> None:
    """Delete from the tables that hold anything; foreign keys are checked when all is gone."""
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    quoted = [connection.ops.quote_name(t) for t in sorted(tables) if t not in NOT_EMPTIED]
    if not quoted:
        return
    asked = (f"SELECT {n} WHERE EXISTS (SELECT 1 FROM {t})" for n, t in enumerate(quoted))
    filled = [quoted[number] for (number,) in _rows(" UNION ALL ".join(asked))]
    with transaction.atomic(), connection.cursor() as cursor:
        for table in filled:
            cursor.execute(f"DELETE FROM {table}")
