"""Below the forest: certainty, tasks behind an effect, what-if, components, planner."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from django.test import Client

from intraskill_web.episodes.models import Episode
from intraskill_web.gates import task_views, whatif
from intraskill_web.gates.design import facts
from intraskill_web.gates.evidence import evidence_of
from intraskill_web.gates.models import Contribution, GateRun
from intraskill_web.gates.soundness import design_checks
from tests.web.factories import Made
from trainer.files import write_json
from trainer.gate.artefacts import CONTRIBUTIONS_SCHEMA
from trainer.gate.regression import least_squares
from trainer.gate.slots import Slot

PATH = "/experiments/demo/rounds/0/gate/"
TASKS = 120


@pytest.fixture
def gate(made: Made) -> GateRun:
    return GateRun.objects.select_related("round__experiment").get(round=made.rounds[0])


@pytest.fixture
def observed(gate: GateRun) -> Iterator[GateRun]:
    """The gate with a ``contributions.json`` whose coefficients its rows take over."""
    rows = list(gate.contributions.order_by("order"))
    layout = whatif.layout_of(rows)
    rng = random.Random(3)
    masks = np.zeros((TASKS, len(rows)))
    place = {name: j for j, name in enumerate(layout.columns)}
    for i in range(TASKS):
        for slot in layout.slots:
            state = rng.choice(slot.states)
            if state is not None:
                masks[i, place[state]] = 1.0
    reward = np.array([[rng.random()] for _ in range(TASKS)])
    bare = np.array([[rng.random()] for _ in range(TASKS)])
    fit = least_squares(masks, reward - bare)
    by_name = dict(zip(layout.columns, fit.beta[:, 0].tolist(), strict=True))
    for row in rows:
        row.coefficient = by_name[row.intervention_id]
        row.save()
    episodes = Episode.objects.filter(round=gate.round, purpose="masked").order_by("task_id")
    known = list(episodes.values_list("task_id", flat=True))
    tasks = [*known, *range(5000, 5000 + TASKS - len(known))]
    slot_of = {name: n for n, slot in enumerate(layout.slots, 1) for name in slot.versions}
    status_of = {row.intervention_id: row.status for row in rows}
    document = {
        "schema_version": CONTRIBUTIONS_SCHEMA,
        "estimator": {"baseline": "same_task_bare_validation"},
        "active_skill_budget": 10,
        "contributions": [
            {
                "intervention_id": name,
                "kind": item.kind,
                "operation": item.operation if item.kind == "candidate" else None,
                "logical_chunk_id": item.logical_chunk_id,
                "order": slot_of[name],
                "coefficient": by_name[name],
                "status": status_of[name],
            }
            for name, item in layout.interventions.items()
        ],
        "observations_table": [
            {
                "task_id": tasks[i],
                "sample_id": 0,
                "mask": masks[i].astype(int).tolist(),
                "included_chunk_ids": [
                    n for n, on in zip(layout.columns, masks[i], strict=True) if on
                ],
                "reward": reward[i, 0],
                "bare_reward": bare[i, 0],
                "reward_detail": {"r_type": reward[i, 0]},
                "bare_reward_detail": {"r_type": bare[i, 0]},
            }
            for i in range(TASKS)
        ],
    }
    folder: Path = gate.round.experiment.folder / gate.path
    write_json(folder / "contributions.json", document)
    yield gate
    (folder / "contributions.json").unlink()


def test_evidence_refits_to_the_recorded_coefficients(observed: GateRun) -> None:
    found = evidence_of(observed)
    assert found is not None
    assert found.refit_error < 1e-12
    assert len(found.observations) == TASKS
    column = found.columns["brand-first"]
    assert column.outcomes["r_type"][0] == pytest.approx(column.outcomes["reward"][0])
    assert 0 <= column.p_positive <= 1
    assert column.frequency is not None
    assert 0 <= column.frequency <= 1


def test_design_checks_pass_on_a_fair_draw_and_find_a_wrong_refit(observed: GateRun) -> None:
    rows = {c.key: c.ok for c in design_checks(observed, evidence_of(observed))}
    assert rows == {"pairs": True, "condition": True, "refit": True, "identity": None}
    manifest = {
        "input": {
            "model": {"checkpoint_id": "a"},
            "bare_baseline": {"checkpoint_id": "b"},
        },
        "protocol": {"split": "val"},
    }
    folder = observed.round.experiment.folder / observed.path
    write_json(folder / "online_gate_manifest.json", manifest)
    assert {c.key: c.ok for c in design_checks(observed, None)} == {
        "pairs": None, "condition": None, "refit": None, "identity": False,
    }  # fmt: skip
    (folder / "online_gate_manifest.json").unlink()


def test_two_slots_that_always_go_together_fail_the_pairwise_balance() -> None:
    masks = np.array([[1.0, 1.0], [0.0, 0.0]] * 100)
    masks[0] = [1.0, 0.0]
    slots = [Slot("a", "a", ("a",)), Slot("b", "b", ("b",))]
    found = facts(masks, ["a", "b"], slots)
    assert found["pairs"] == 1
    assert found["pair_p"] < 1e-9
    rewrites = facts(masks, ["a", "b"], [Slot("a", "a", ("a", "b"))])
    assert (rewrites["pairs"], rewrites["pair_p"]) == (0, None)


def test_tasks_of_a_chunk_come_with_the_largest_residual_first(
    observed: GateRun, viewer_client: Client
) -> None:
    sides = {}
    for shown in ("yes", "no"):
        path = f"{PATH}tasks/?chunk=brand-first&shown={shown}&format=json"
        data = viewer_client.get(path).json()
        residuals = [abs(row["residual"]) for row in data["tasks"]]
        assert residuals == sorted(residuals, reverse=True)
        sides[shown] = data["total"]
    assert sides["yes"] + sides["no"] == TASKS
    page = viewer_client.get(f"{PATH}tasks/?chunk=brand-first&shown=yes").content.decode()
    compared = re.findall(r'href="(/episodes/\d+/\?with=\d+)#divergence"', page)
    assert len(compared) > 1
    assert viewer_client.get(compared[0]).status_code == 200  # of one task
    assert viewer_client.get(f"{PATH}tasks/?chunk=nothing").status_code == 404


def test_the_tasks_of_a_chunk_are_told_page_by_page_and_no_page_twice(
    observed: GateRun, viewer_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_views, "PAGE", 7)
    path = f"{PATH}tasks/?chunk=brand-first&format=json"
    total = viewer_client.get(path).json()["total"]
    pages = [
        [row["task_id"] for row in viewer_client.get(f"{path}&page={n}").json()["tasks"]]
        for n in range(1, -(-total // 7) + 1)
    ]
    assert len(pages) > 1 and len({task for page in pages for task in page}) == total
    for wrong in (f"page={len(pages) + 1}", "page=0", "page=x", "shown=maybe"):
        answer = viewer_client.get(f"{path}&{wrong}")
        assert answer.status_code == 400 and " is not one of " in answer.json()["error"]


def test_what_if_selects_anew_and_leaves_the_record(
    observed: GateRun, viewer_client: Client
) -> None:
    before = list(Contribution.objects.filter(gate=observed).values())
    data = viewer_client.get(f"{PATH}?budget=2&format=json").json()["what_if"]
    best = Contribution.objects.filter(gate=observed).order_by("-coefficient")
    assert len(data["selected"]) == 2
    assert best[0].intervention_id in data["selected"]
    high = viewer_client.get(f"{PATH}?threshold=0.9&format=json").json()["what_if"]
    assert high["selected"] == []
    standard = viewer_client.get(f"{PATH}?as=standard&format=json").json()["what_if"]
    assert standard["problem"] == ""
    assert list(Contribution.objects.filter(gate=observed).values()) == before


@pytest.mark.parametrize("query", ["budget=x", "budget=0", "threshold=nan", "threshold=7"])
def test_a_question_that_makes_no_sense_is_answered_in_words(
    gate: GateRun, viewer_client: Client, query: str
) -> None:
    data = viewer_client.get(f"{PATH}?{query}&format=json").json()["what_if"]
    assert "Budget is a whole number" in data["problem"]
    assert viewer_client.get(f"{PATH}?{query}").status_code == 200


def test_without_observations_the_page_says_so(gate: GateRun, viewer_client: Client) -> None:
    text = viewer_client.get(PATH).content.decode()
    assert "observations are not here" in text
    data = viewer_client.get(f"{PATH}?as=standard&format=json").json()
    assert "needs the gate" in data["what_if"]["problem"]
    assert data["plan"]["se_now"] == 0.021  # of the rows themselves
    assert viewer_client.get(f"{PATH}tasks/?chunk=brand-first").status_code == 404


def test_more_slots_raise_the_error_and_more_tasks_lower_it(
    observed: GateRun, viewer_client: Client
) -> None:
    def ratio(query: str) -> float:
        return float(viewer_client.get(f"{PATH}?{query}&format=json").json()["plan"]["ratio"])

    assert ratio("slots=18") > 1.0
    assert ratio("slots=11&tasks=400") < 0.5


def test_what_is_typical_now_is_the_median_error_of_the_forest(
    gate: GateRun, viewer_client: Client
) -> None:
    rows = list(gate.contributions.order_by("order"))
    for row, se in zip(rows, (0.050, 0.052, *[0.051] * len(rows)), strict=False):
        row.se = se
        row.save()
    plan = viewer_client.get(f"{PATH}?slots=20&format=json").json()["plan"]
    assert plan["se_now"] == 0.051
    assert plan["se"] == pytest.approx(0.051 * plan["ratio"])
    gate.contributions.update(se=None)
    plan = viewer_client.get(f"{PATH}?slots=20&format=json").json()["plan"]
    assert plan["se_now"] is None and plan["se"] is None and plan["ratio"] > 1
