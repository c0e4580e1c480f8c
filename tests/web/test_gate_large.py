"""A gate of 64 interventions and 8 reward components: the page stays small and quick to make."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from benchmarks.pages_data import GATE_PARTS, large_gate
from intraskill_web.gates import evidence
from intraskill_web.gates.models import GateRun
from tests.web.factories import Made

PATH = "/experiments/demo/rounds/0/gate/"
LARGEST = 300_000  # bytes of the page; what the browser caches is apart


@pytest.fixture
def large(made: Made) -> GateRun:
    """Its rows and its observations."""
    gate = GateRun.objects.select_related("round__experiment").get(round=made.rounds[0])
    return large_gate(gate)


def test_the_page_of_a_large_gate_is_small(
    large: GateRun, viewer_client: Client, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(14):
        response = viewer_client.get(PATH)
    text = response.content.decode()
    assert all(f'id="{key}"' in text for key in ("sure", "parts", "whatif", "planner"))
    assert text.count("<figure>") == len(GATE_PARTS)
    assert len(response.content) < LARGEST


def test_the_long_draw_is_made_once(large: GateRun, monkeypatch: pytest.MonkeyPatch) -> None:
    first = evidence.evidence_of(large)
    evidence._evidence.cache_clear()
    monkeypatch.setattr(evidence, "resampled_effects", lambda *_a, **_k: pytest.fail("drawn again"))
    again = evidence.evidence_of(large)
    assert first is not None and again is not None
    assert {n: c.frequency for n, c in again.columns.items()} == {
        n: c.frequency for n, c in first.columns.items()
    }
