"""An exported report opened from disk with the network off: quiet, complete, in both themes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from intraskill_web.experiments.models import Experiment
from jobs.reports.build import export_report
from tests.e2e.accessibility import serious
from tests.web.report_run import write_run


@pytest.fixture
def site(transactional_db: None, home: Path, tmp_path: Path) -> Path:
    write_run(home / "runs" / "small")
    return export_report(Experiment.objects.create(name="small"), tmp_path / "site").folder


@pytest.fixture
def opened(browser: Any, site: Path) -> Iterator[Any]:
    """``opened("zh/index.html", width=390, scheme="dark")`` → (page, what went wrong)."""
    contexts = []

    def start(path: str, width: int = 1440, scheme: str = "light") -> tuple[Any, list[str]]:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        contexts.append(context)
        page, faults = context.new_page(), []
        page.on("console", lambda m: faults.append(m.text) if m.type in ("error", "warning") else 0)
        page.on("pageerror", lambda error: faults.append(f"page error: {error}"))
        page.on("request", lambda r: None if r.url.startswith("file:") else faults.append(r.url))
        page.goto((site / path).as_uri().replace("%23", "#"), wait_until="load")
        return page, faults

    yield start
    for context in contexts:
        context.close()


OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize(("folder", "width", "scheme"), [("", 1440, "light"), ("zh/", 390, "dark")])
def test_every_page_is_quiet_and_fits(
    opened: Any, site: Path, folder: str, width: int, scheme: str
) -> None:
    for path in sorted((site / folder).glob("*.html")):
        page, faults = opened(f"{folder}{path.name}", width, scheme)
        assert faults == [], path.name
        assert page.evaluate(OVERFLOW) <= 0, path.name


@pytest.mark.long
def test_no_chapter_has_a_serious_fault(opened: Any, site: Path, axe: str) -> None:
    """Chapters in turn: English on a dark phone, Chinese on a light desk."""
    windows = [("", 390, "dark"), ("zh/", 1440, "light")]
    found = {}
    for number, path in enumerate(sorted(site.glob("*.html"))):
        folder, width, scheme = windows[number % 2]
        page, _faults = opened(f"{folder}{path.name}", width, scheme)
        found[f"{folder}{path.name}"] = serious(page, axe)
    assert not {name: faults for name, faults in found.items() if faults}


def test_the_theme_switches_and_is_kept_on_the_next_page(opened: Any) -> None:
    page, faults = opened("index.html")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("[data-theme-toggle]")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    page.click("header nav >> text=Method")
    expect(page).to_have_url(re.compile("method.html"))
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert faults == []


def test_the_language_switches_on_the_same_chapter_and_back(opened: Any) -> None:
    page, _faults = opened("results.html#split-test")
    page.click("text=中文")
    expect(page).to_have_url(re.compile("zh/results.html#split-test$"))
    expect(page.locator("h1")).to_contain_text("结果")
    page.click("text=English")
    expect(page).to_have_url(re.compile("site/results.html#split-test$"))


def test_curves_answer_the_choice_of_a_metric_and_the_slider(opened: Any) -> None:
    page, faults = opened("index.html")
    page.wait_for_selector("#plot-curves .main-svg")
    first = page.inner_text('[data-plot="curves"] [data-summary]')
    page.select_option('[data-pick="metric"]', "rollout/shopsim/reward_mean")
    assert page.inner_text('[data-plot="curves"] [data-summary]') != first
    page.fill("[data-slider]", "1")
    assert page.inner_text("[data-output]").startswith("1: ")
    assert faults == []


def test_the_behaviour_explorer_answers_every_choice(opened: Any) -> None:
    page, faults = opened("behaviour.html")
    page.wait_for_selector("#plot-behaviour .main-svg")
    seen = set()
    for name, value in (("metric", "searches"), ("split", "train"), ("outcome", "failure"),
                        ("statistic", "p90")):  # fmt: skip
        page.select_option(f'[data-pick="{name}"]', value)
        seen.add(page.inner_text('[data-plot="behaviour"] [data-summary]'))
    assert len(seen) >= 3
    assert faults == []


def test_the_library_is_searched_without_a_network(opened: Any) -> None:
    page, faults = opened("library.html")
    every = page.locator("[data-document]").count()
    page.fill("[data-find]", "proposal_ledger")
    assert 0 < page.locator("[data-document]:visible").count() < every
    page.fill("[data-find]", "no such words anywhere")
    assert page.locator("[data-none]").is_visible()
    page.fill("[data-find]", "")
    assert page.locator("[data-document]:visible").count() == every
    assert faults == []
