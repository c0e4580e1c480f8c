"""The pages of the administration as a machine reads them."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from intraskill_web.configs.models import ConfigRevision
from tests.e2e.accessibility import faults_of
from tests.e2e.conftest import WINDOWS

PATHS = [
    "/admin/",
    "/admin/configs/configrevision/",
    "/admin/configs/configrevision/add/",
    "/admin/configs/configrevision/add/?kind=gate",
    "/admin/configs/configrevision/add/?kind=analyst&as=yaml",
    "/admin/configs/configrevision/REVISION/change/",
    "/admin/gates/contribution/",
]


@pytest.mark.parametrize(
    "window", [WINDOWS[0], pytest.param(WINDOWS[-1], marks=pytest.mark.long)], ids=str
)
@pytest.mark.usefixtures("full")
def test_the_administration_has_no_serious_fault(
    visit: Any, axe: str, admin: Any, window: tuple[int, str, str]
) -> None:
    visitor = visit(*window)
    client = Client()
    client.force_login(admin)
    name = settings.SESSION_COOKIE_NAME
    cookie = {"name": name, "value": client.cookies[name].value, "url": visitor.address}
    visitor.context.add_cookies([cookie])
    newest = ConfigRevision.objects.latest("pk").pk
    paths = [path.replace("REVISION", str(newest)) for path in PATHS]
    faults = {path: faults_of(visitor, path, axe) for path in paths}
    assert not any(faults.values()), faults
