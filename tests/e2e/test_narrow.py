"""What a phone shows: names in whole lines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.web.factories import Made
from trainer.files import write_text

LINE = 22  # pixels; a row with its padding has up to 16 more

FIRST_CELLS = "main tbody tr > :first-child"


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
    (high,) = heights(page, "td a.id")
    assert high <= 3 * LINE
    assert visitor.faults == []
