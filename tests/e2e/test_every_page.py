"""Every page in a real browser: no complaint in the console, no sideways overflow, everything
named and translated, nothing that axe-core calls serious.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import expect

from tests.e2e.accessibility import faults_of
from tests.e2e.conftest import WINDOWS
from tests.web.addresses import pages
from tests.web.factories import Made

DUPLICATES = """() => {
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  return ids.filter((id, i) => ids.indexOf(id) !== i);
}"""


@pytest.mark.parametrize(
    "turn", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, len(WINDOWS)))]
)
@pytest.mark.usefixtures("without_checks")
def test_every_page_is_without_faults(
    full: Made, visit: Any, axe: str, operator_client: Client, turn: int
) -> None:
    """One visit a page, the windows in turn; after all turns each page met each window."""
    visitors = [visit(*window) for window in WINDOWS]
    faults: dict[str, list[str]] = {}
    for number, path in enumerate(pages(full, operator_client), start=turn):
        visitor = visitors[number % len(visitors)]
        found = faults_of(visitor, path, axe)
        page = visitor.page
        found += [f"two elements with the id {name}" for name in page.evaluate(DUPLICATES)]
        if page.locator("h1").count() != 1:
            found.append(f"{page.locator('h1').count()} h1")
        if found:
            faults[f"{path} {WINDOWS[number % len(visitors)]}"] = found
    assert faults == {}


def test_the_sign_in_page(made: Made, browser: Any, live_server: Any, operator: Any) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(f"{live_server.url}/experiments/demo/")
    page.get_by_label("Name").fill("olaf")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("main").get_by_role("button").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Name").fill("olaf")
    page.get_by_label("Password").fill("olaf-password")
    page.get_by_role("main").get_by_role("button").click()
    expect(page).to_have_url(f"{live_server.url}/experiments/demo/")
    context.close()
