"""A gate of 64 interventions and 8 reward components: the page stays small and quick to make."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from django.test import Client

from intraskill_web.gates import evidence
from intraskill_web.gates.models import Contribution, GateRun
from tests.web.factories import Made
from trainer.files import write_json
from trainer.gate.artefacts import CONTRIBUTIONS_SCHEMA
from trainer.gate.regression import least_squares

PATH = "/experiments/demo/rounds/0/gate/"
CHUNKS, TASKS = 64, 400
PARTS = [f"r_part{k}" for k in range(8)]
LARGEST = 300_000  # bytes of the page; what the browser caches is apart


@pytest.fixture
def large(made: Made) -> GateRun:
    """Its rows and its observations."""
    gate = GateRun.objects.select_related("round__experiment").get(round=made.rounds[0])
    rng = random.Random(5)
    masks = np.array([[rng.random() < 0.5 for _ in range(CHUNKS)] for _ in range(TASKS)], float)
    after = np.array([[rng.random() for _ in range(len(PARTS) + 1)] for _ in range(TASKS)])
    before = np.array([[rng.random() for _ in range(len(PARTS) + 1)] for _ in range(TASKS)])
    fit = least_squares(masks, after - before)
    beta = fit.beta[:, -1].tolist()
    names = [f"chunk-{j:012x}" for j in range(CHUNKS)]
    ranks = {j: n for n, j in enumerate(sorted(range(CHUNKS), key=lambda j: -beta[j]), 1)}
    status = ["selected" if beta[j] > 0 and ranks[j] <= 10 else "retired" for j in range(CHUNKS)]
    gate.contributions.all().delete()
    Contribution.objects.bulk_create(
        Contribution(
            gate=gate,
            order=j + 1,
            intervention_id=name,
            logical_chunk_id=name,
            kind="current",
            title=f"候选商品筛选 · 历史行为与预算协同 {j}",
            coefficient=beta[j],
            se=0.05,
            low=beta[j] - 0.1,
            high=beta[j] + 0.1,
            rank=ranks[j],
            status=status[j],
            with_n=int(masks[:, j].sum()),
            without_n=TASKS - int(masks[:, j].sum()),
        )
        for j, name in enumerate(names)
    )
    GateRun.objects.filter(pk=gate.pk).update(observations=TASKS, requested=TASKS)
    write_json(
        gate.round.experiment.folder / gate.path / "contributions.json",
        {
            "schema_version": CONTRIBUTIONS_SCHEMA,
            "active_skill_budget": 10,
            "contributions": [
                {
                    "intervention_id": name,
                    "kind": "current",
                    "operation": None,
                    "logical_chunk_id": name,
                    "order": j + 1,
                    "coefficient": beta[j],
                    "status": status[j],
                }
                for j, name in enumerate(names)
            ],
            "observations_table": [
                {
                    "task_id": i,
                    "sample_id": 0,
                    "mask": masks[i].astype(int).tolist(),
                    "included_chunk_ids": [n for n, m in zip(names, masks[i], strict=True) if m],
                    "reward": after[i, -1],
                    "bare_reward": before[i, -1],
                    "reward_detail": dict(zip(PARTS, after[i].tolist(), strict=False)),
                    "bare_reward_detail": dict(zip(PARTS, before[i].tolist(), strict=False)),
                }
                for i in range(TASKS)
            ],
        },
    )
    return gate


def test_the_page_of_a_large_gate_is_small(
    large: GateRun, viewer_client: Client, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(14):
        response = viewer_client.get(PATH)
    text = response.content.decode()
    assert all(f'id="{key}"' in text for key in ("sure", "parts", "whatif", "planner"))
    assert text.count("<figure>") == len(PARTS)
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
