"""Charts saved to files, and the form of a configuration that checks while one types."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from django.conf import settings
from django.test import Client

from intraskill_web.configs.services import add_revision
from intraskill_web.gates.models import Contribution
from tests.web.factories import Made

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '</text><script>alert("1")</script>&'


def saved(visitor: Any, section: str, kind: str) -> bytes:
    card = visitor.page.locator(f"section[aria-labelledby={section}]")
    with visitor.page.expect_download() as waiting:
        card.locator(f"[data-save={kind}]").click()
    return Path(waiting.value.path()).read_bytes()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_chart_is_saved_with_its_title_and_every_row(made: Made, visit: Any, scheme: str) -> None:
    Contribution.objects.filter(intervention_id="budget").update(title=HOSTILE)
    visitor = visit(1440, scheme)
    visitor.open("/experiments/demo/rounds/0/gate/")
    root = ElementTree.fromstring(saved(visitor, "forest-title", "svg"))
    texts = ["".join(t.itertext()) for t in root.iter(f"{SVG}text")]
    assert "Contribution of each intervention" in texts
    assert HOSTILE in texts
    assert not list(root.iter(f"{SVG}script"))
    rows = Contribution.objects.filter(gate__round=made.rounds[0]).count()
    points = [p for p in root.iter(f"{SVG}path") if p.get("d", "").startswith("M-")]
    assert len(points) >= rows
    assert visitor.faults == []


def test_a_picture_is_a_picture(made: Made, visit: Any) -> None:
    visitor = visit(1440)
    visitor.open("/experiments/demo/")
    picture = saved(visitor, "p-success", "png")
    assert picture.startswith(b"\x89PNG")
    width = int.from_bytes(picture[16:20])
    assert width > 1000
    assert visitor.faults == []


def test_the_form_of_a_configuration_checks_while_one_types(
    made: Made, visit: Any, admin: Any
) -> None:
    base = add_revision("gate", {}, "profile: standard\n", reason="The start")
    visitor = visit(1440)
    client = Client()
    client.force_login(admin)
    name = settings.SESSION_COOKIE_NAME
    cookie = {"name": name, "value": client.cookies[name].value, "url": visitor.address}
    visitor.context.add_cookies([cookie])
    page = visitor.open(f"/admin/configs/configrevision/add/?kind=gate&from={base.pk}")
    budget = page.locator('[name="active_skill_budget"]')
    budget.fill("0")
    said = page.locator('[data-said="active_skill_budget"]')
    said.wait_for(state="visible")
    assert said.inner_text() == "must be ≥ 1"
    assert budget.get_attribute("aria-invalid") == "true"
    budget.fill("20")
    said.wait_for(state="hidden")
    live = page.locator("#live")
    assert "active_skill_budget: 10 → 20" in live.inner_text()
    page.locator('[name="standard.adopt_alpha"]').fill("0.4")
    page.locator("#live .bad").wait_for()
    assert "adopt_familywise must be at least adopt_alpha" in live.inner_text()
    assert visitor.faults == []
