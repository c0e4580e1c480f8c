"""Every page in a real browser: no complaint in the console, no sideways overflow, everything
named.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.web.addresses import pages
from tests.web.factories import Made

WINDOWS = [
    (390, "dark", "zh-CN"),
    (390, "light", "en-US"),
    (1024, "light", "zh-CN"),
    (1440, "dark", "en-US"),
]
# Controls without a name for screen readers, and fields without a label.
NAMELESS = """() => [
  ...document.querySelectorAll("a[href], button, summary, input, select, textarea")]
  .filter((e) => e.type !== "hidden" && e.checkVisibility())
  .filter((e) => !(e.textContent.trim() || e.getAttribute("aria-label") || e.title
                   || (e.labels && e.labels.length) || e.value))
  .map((e) => e.outerHTML.slice(0, 120))"""
DUPLICATES = """() => {
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  return ids.filter((id, i) => ids.indexOf(id) !== i);
}"""


@pytest.mark.usefixtures("without_checks")
def test_every_page_is_quiet_and_fits_its_window(
    made: Made, visit: Any, operator_client: Client
) -> None:
    """One visit a page, the windows in turn."""
    visitors = [visit(*window) for window in WINDOWS]
    faults: dict[str, list[str]] = {}
    for number, path in enumerate(pages(made, operator_client)):
        visitor = visitors[number % len(visitors)]
        page = visitor.open(path)
        found = [*visitor.faults]
        if visitor.overflow() > 0:
            found.append(f"{visitor.overflow()} px wider than the window")
        found += [f"nameless: {html}" for html in page.evaluate(NAMELESS)]
        found += [f"two elements with the id {name}" for name in page.evaluate(DUPLICATES)]
        if page.locator("h1").count() != 1:
            found.append(f"{page.locator('h1').count()} h1")
        if found:
            faults[f"{path} {WINDOWS[number % len(visitors)]}"] = found
        visitor.faults.clear()
    assert faults == {}


def test_the_sign_in_page(made: Made, browser: Any, live_server: Any, operator: Any) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(f"{live_server.url}/experiments/demo/")
    page.get_by_label("Name").fill("olaf")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("main").get_by_role("button").click()
    assert page.get_by_role("alert").is_visible()
    page.get_by_label("Name").fill("olaf")
    page.get_by_label("Password").fill("olaf-password")
    page.get_by_role("main").get_by_role("button").click()
    assert page.url == f"{live_server.url}/experiments/demo/"
    context.close()
