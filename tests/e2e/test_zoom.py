"""Choosing curves among many: words narrow the list, and no more can be chosen than are drawn."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import expect

from intraskill_web.monitoring.views import MAX_METRICS
from tests.web.factories import Made


def test_words_narrow_the_metrics_and_what_is_chosen_stays(made: Made, visit: Any) -> None:
    visitor = visit()
    page = visitor.open("/experiments/demo/zoom/?metric=success_rate")
    options = page.locator(".zoom-names label")
    before = options.count()
    assert before > MAX_METRICS
    page.get_by_label("Search metrics").fill("inclusion CHUNK")
    shown = options.locator("visible=true").all_inner_texts()
    assert "success_rate" in shown and len(shown) < before
    assert all("inclusion" in name for name in shown if name != "success_rate")
    page.get_by_label("Search metrics").fill("")
    for option in options.all()[: MAX_METRICS + 1]:
        if not option.locator("input").is_disabled():
            option.locator("input").check()
    expect(page.locator(".zoom-names input:checked")).to_have_count(MAX_METRICS)
    expect(page.locator(".zoom-names input:disabled")).to_have_count(before - MAX_METRICS)
    page.get_by_role("button", name="Draw").click()
    expect(page.locator(".zoom-names input:checked")).to_have_count(MAX_METRICS)
    assert visitor.faults == []
