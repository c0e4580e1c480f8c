"""One made experiment for all tests of a module, in a transaction that is rolled back at its
end.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.db import transaction
from django.test import Client
from hypothesis import settings as hypothesis_settings

from intraskill_web.core.po import compile_stale
from tests.web.factories import Made, make_experiment

hypothesis_settings.register_profile("steady", deadline=None)  # a busy machine is no failure
hypothesis_settings.load_profile("steady")


@pytest.fixture(scope="session", autouse=True)
def catalogues() -> None:
    """Compiled translations, whether or not ``make setup`` has run."""
    compile_stale(Path(folder) for folder in settings.LOCALE_PATHS)


@pytest.fixture(scope="module")
def made(django_db_setup: None, django_db_blocker: object) -> Iterator[Made]:
    """Two rounds: the first finished, the second in training."""
    with django_db_blocker.unblock(), transaction.atomic():  # type: ignore[attr-defined]
        experiment = make_experiment()
        yield experiment
        transaction.set_rollback(True)
        shutil.rmtree(experiment.experiment.folder)


@pytest.fixture
def anonymous() -> Client:
    """Somebody who has not logged in."""
    return Client()
