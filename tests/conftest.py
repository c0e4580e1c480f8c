"""What every test may use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.conf import settings

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.test import Client


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs PostgreSQL where the tests run on SQLite."""
    if settings.DATABASES["default"]["ENGINE"].endswith("postgresql"):
        return
    for item in items:
        if item.get_closest_marker("postgres"):
            item.add_marker(pytest.mark.skip(reason="needs PostgreSQL: set DATABASE_URL"))


REPOSITORY = Path(__file__).resolve().parents[1]


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
