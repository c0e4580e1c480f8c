"""What a phone shows: names in whole lines, and curves that no legend covers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from intraskill_web.monitoring.models import MetricPoint
from intraskill_web.monitoring.series import PREFIX
from tests.web.factories import Made
from trainer.files import write_text

LINE = 22  # pixels; a row with its padding has up to 16 more

FIRST_CELLS = "main tbody tr > :first-child"
LEGEND_AND_CURVES = """() => {
  const legend = document.querySelector('#zoom .legend').getBoundingClientRect();
  const curves = document.querySelector('#zoom .nsewdrag').getBoundingClientRect();
  return [legend.bottom, curves.top];
}"""


def heights(page: Any, selector: str) -> list[float]:
    return page.eval_on_selector_all(selector, "all => all.map(e => e.clientHeight)")  # type: ignore[no-any-return]


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_rounds_and_arms_stay_in_their_line(made: Made, visit: Any, locale: str) -> None:
    visitor = visit(390, "light", locale)
    page = visitor.open("/experiments/demo/internalisation/")
    found = heights(page, FIRST_CELLS)
    assert found and max(found) <= 2 * LINE
    assert visitor.faults == []


def test_the_id_of_a_card_takes_few_lines(made: Made, visit: Any) -> None:
    row = {
        "card_id": "failure-train-group-000000004-sample-000000016-01",
        "source_trajectory_id": "train-group-000000004-sample-000000016",
        "status": "PROPOSE_ADD",
        "eligible_for_consolidation": True,
        "deployable_abstraction": {"failure_mechanism": "a wanted option was not offered " * 5},
    }
    folder = made.rounds[0].folder / "analysis"
    write_text(folder / "failure_cards.jsonl", json.dumps(row) + "\n")
    visitor = visit(390, "light", "en-US")
    page = visitor.open("/experiments/demo/rounds/0/cards/")
    (high,) = heights(page, "td .id")
    assert high <= 3 * LINE
    assert visitor.faults == []


def test_the_legend_lies_above_the_curves(made: Made, visit: Any) -> None:
    visitor = visit(390, "light", "en-US")
    names = MetricPoint.objects.filter(experiment=made.experiment).values_list("name", flat=True)
    chosen = sorted({name.removeprefix(PREFIX) for name in names})[:6]
    assert len(chosen) == 6
    query = "&".join(f"metric={name}" for name in chosen)
    page = visitor.open(f"/experiments/demo/zoom/?{query}")
    page.locator("#zoom .legend .traces").nth(1).wait_for()
    legend_end, curves_begin = page.evaluate(LEGEND_AND_CURVES)
    assert 0 < legend_end <= curves_begin + 1
