"""Every page in a real browser: no complaint in the console, no sideways overflow, everything
named.
"""

from __future__ import annotations

from typing import Any

import pytest

from intraskill_web.episodes.models import Episode
from tests.web.factories import Made

PATHS = [
    "/",
    "/experiments/demo/",
    "/experiments/demo/rounds/0/",
    "/experiments/demo/rounds/1/",
    "/experiments/demo/rounds/0/gate/",
    "/experiments/demo/rounds/1/gate/",
    "/experiments/demo/rounds/0/panels/outcome/",
    "/experiments/demo/rounds/0/panels/inclusion/",
    "/experiments/demo/zoom/",
    "/experiments/demo/skills/1/",
    "/experiments/demo/chunks/brand-first/",
    "/experiments/demo/test/",
    "/ledger/",
    "/gates/",
    "/skills/",
    "/episodes/?experiment=demo&purpose=train",
    "/episodes/EPISODE/",
    "/jobs/",
    "/jobs/attempts/ATTEMPT/",
    "/help/",
    "/password/",
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


def real(path: str, made: Made) -> str:
    episode = Episode.objects.filter(purpose="train", skill_count__gte=2).order_by("pk")[0]
    return path.replace("EPISODE", str(episode.pk)).replace("ATTEMPT", str(made.attempts[0].pk))


@pytest.mark.parametrize(
    ("width", "scheme", "locale"),
    [
        (390, "dark", "zh-CN"),
        (390, "light", "en-US"),
        (1024, "light", "zh-CN"),
        (1440, "dark", "en-US"),
    ],
)
def test_every_page_is_quiet_and_fits_its_window(
    made: Made, visit: Any, width: int, scheme: str, locale: str
) -> None:
    visitor = visit(width, scheme, locale)
    faults: dict[str, list[str]] = {}
    for path in PATHS:
        page = visitor.open(real(path, made))
        found = [*visitor.faults]
        if visitor.overflow() > 0:
            found.append(f"{visitor.overflow()} px wider than the window")
        found += [f"nameless: {html}" for html in page.evaluate(NAMELESS)]
        found += [f"two elements with the id {name}" for name in page.evaluate(DUPLICATES)]
        if page.locator("h1").count() != 1:
            found.append(f"{page.locator('h1').count()} h1")
        if found:
            faults[path] = found
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
