"""What every test may use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import translation

from tests import databases, home_databases, order

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.test import Client


def pytest_configure() -> None:
    home_databases.begin_run()


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):  # once, by the process that ends last
        home_databases.end_run()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say which tests use a database, and let what takes longest begin first."""
    databases.mark(items)
    order.longest_first(items)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The database of pytest-django, emptied the quick way after tests that commit."""
    with pytest.MonkeyPatch.context() as patch:
        with django_db_blocker.unblock():
            databases.use_the_quick_way(patch)
        yield


REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _own_language() -> Iterator[None]:
    """No test hears the language that a page was asked for in an earlier one of its process."""
    yield
    translation.deactivate()


@pytest.fixture(scope="session")
def published() -> Path:
    """The published artefacts beside the repository; they are never part of it."""
    path = REPOSITORY.parent / "shared" / "published"
    if not path.is_dir():
        pytest.skip("the published artefacts are not beside the repository (../shared/published)")
    return path


@pytest.fixture
def home(tmp_path: Path, settings: object) -> Path:
    """An empty home folder that the settings point to."""
    from intraskill_web import home as home_folder

    home_folder.prepare(tmp_path)
    settings.INTRASKILL_HOME = tmp_path  # type: ignore[attr-defined]
    return tmp_path


def _user(name: str, role: str) -> User:
    from django.contrib.auth.models import Group, User

    user = User.objects.create_user(name, password=f"{name}-password", is_staff=role == "admin")
    user.groups.add(Group.objects.get(name=role))
    return user


@pytest.fixture
def viewer(db: None) -> User:
    """Vera may look."""
    return _user("vera", "viewer")


@pytest.fixture
def operator(db: None) -> User:
    """Olaf may start and stop."""
    return _user("olaf", "operator")


@pytest.fixture
def admin(db: None) -> User:
    """Ada may do everything."""
    return _user("ada", "admin")


@pytest.fixture
def viewer_client(client: Client, viewer: User) -> Client:
    client.force_login(viewer)
    return client


@pytest.fixture
def operator_client(operator: User) -> Client:
    from django.test import Client

    client = Client()
    client.force_login(operator)
    return client


@pytest.fixture
def admin_client(admin: User) -> Client:
    from django.test import Client

    client = Client()
    client.force_login(admin)
    return client


@pytest.fixture
def without_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening a preflight starts no process, which would outlive the test's database."""
    monkeypatch.setattr("intraskill_web.monitoring.preflight.run.kick", lambda name, action: None)
