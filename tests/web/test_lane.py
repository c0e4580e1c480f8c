"""The stage lane says what came of a stage, not only what it was going to do."""

from __future__ import annotations

from django.test import Client

from intraskill_web.experiments.lane import came
from tests.web.factories import Made


def test_a_finished_stage_tells_what_it_found() -> None:
    scores = {"bare_success": 0.5, "full_success": 0.75}
    told = {
        "freeze": (scores, ["success: bare 0.500, full 0.750"]),
        "train": ({"success_first": 0.25, "success_last": 0.5}, ["success 0.250 → 0.500"]),
        "analyse": ({"analyzed_cards": 9, "candidates": 3}, ["9 cards, 3 candidates"]),
        "validate": (scores, ["success: bare 0.500, full 0.750"]),
        "gate": (
            {"selected": 5, "retired": 1, "delta_mean": 0.0123},
            ["5 kept, 1 retired; +0.012"],
        ),
        "select": (
            {"label": "S1", "bank_size": 5, "test": scores},
            ["S1: 5 chunks", "test: bare 0.500, full 0.750"],
        ),
    }
    for kind, (outcome, lines) in told.items():
        assert came(kind, outcome) == lines, kind
        assert came(kind, {}) == []


def test_the_round_page_shows_it(made: Made, viewer_client: Client) -> None:
    stage = made.rounds[0].stages.get(kind="select")
    stage.outcome = {"label": "S1", "bank_size": 1}
    stage.save()
    html = viewer_client.get("/experiments/demo/rounds/0/").content.decode()
    assert "S1: 1 chunk<" in html
