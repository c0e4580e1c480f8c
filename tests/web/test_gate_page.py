"""The gate page: health before numbers, families by rank, and nothing shown of an incomplete
gate.
"""

from __future__ import annotations

import pytest
from django.test import Client

from intraskill_web.episodes.models import Episode
from intraskill_web.gates.forest import families, forest
from intraskill_web.gates.health import balance, checks, sound
from intraskill_web.gates.models import Contribution, GateRun
from tests.web.factories import Made
from tests.web.html import Page

PATH = "/experiments/demo/rounds/0/gate/"


@pytest.fixture
def gate(made: Made) -> GateRun:
    return GateRun.objects.get(round=made.rounds[0])


def rows(gate: GateRun) -> list[Contribution]:
    return list(gate.contributions.all())


def failed(gate: GateRun) -> set[str]:
    return {check.key for check in checks(gate, rows(gate)) if check.ok is False}


def test_a_whole_gate_passes_and_unknown_is_not_passed(gate: GateRun) -> None:
    assert failed(gate) == set()
    unknown = {c.key for c in checks(gate, rows(gate)) if c.ok is None}
    assert unknown == {"checkpoint"}


def test_missing_pairs_fail_the_gate(gate: GateRun) -> None:
    gate.observations -= 1
    assert failed(gate) == {"coverage"}
    assert not sound(gate, rows(gate))


def test_a_test_task_in_either_run_fails_the_gate(gate: GateRun) -> None:
    Episode.objects.filter(round=gate.round, purpose="masked", task_id=3).update(split="test")
    assert failed(gate) == {"test_split"}


def test_a_lopsided_slot_fails_the_gate(gate: GateRun) -> None:
    Contribution.objects.filter(gate=gate, intervention_id="size").update(with_n=39, without_n=1)
    assert failed(gate) == {"balance"}


def test_balance_judges_a_rewrite_family_by_thirds() -> None:
    alone = Contribution(intervention_id="a", logical_chunk_id="a", with_n=200, without_n=200)
    old = Contribution(intervention_id="b", logical_chunk_id="b", with_n=133, without_n=267)
    new = Contribution(intervention_id="c", logical_chunk_id="b", with_n=200, without_n=200)
    found = {row.intervention_id: p for row, p in balance([alone, old, new])}
    assert found["a"] == pytest.approx(1.0)
    assert found["b"] == pytest.approx(0.97, abs=0.02)
    assert found["c"] < 1e-6


@pytest.mark.parametrize("change", [{"status": "incomplete"}, {"observations": 39}])
def test_an_incomplete_gate_shows_no_selection(
    gate: GateRun, viewer_client: Client, change: dict[str, object]
) -> None:
    GateRun.objects.filter(pk=gate.pk).update(**change)
    text = viewer_client.get(PATH).content.decode()
    assert "No selection is shown" in text
    assert "Contribution of each intervention" not in text
    assert viewer_client.get(f"{PATH}?format=json").json()["contributions"] == []
    round_page = viewer_client.get("/experiments/demo/rounds/0/").content.decode()
    assert "Contribution of each intervention" not in round_page


def test_coefficients_are_exact_in_the_twin(gate: GateRun, viewer_client: Client) -> None:
    data = viewer_client.get(f"{PATH}?format=json").json()
    found = {row["intervention_id"]: row["coefficient"] for row in data["contributions"]}
    assert found == {row.intervention_id: row.coefficient for row in rows(gate)}


def test_versions_of_a_chunk_stand_together_ordered_by_the_best(gate: GateRun) -> None:
    ordered = [[row.intervention_id for row in family] for family in families(rows(gate))]
    assert ordered[:3] == [
        ["brand-first"],
        ["next-page"],
        ["open-details", "online-6f02a1b2c3d4e5f6"],
    ]


def test_the_page_counts_the_intervals_that_exclude_zero(gate: GateRun) -> None:
    made = forest(gate, rows(gate), experiment="demo")
    by_hand = [
        r for r in rows(gate) if r.low is not None and r.high is not None and r.low * r.high > 0
    ]
    assert made.excluding_zero == len(by_hand)
    assert (made.selected, made.total, made.budget) == (8, 12, 10)


def test_a_round_without_a_gate_says_what_it_needs(made: Made, viewer_client: Client) -> None:
    text = viewer_client.get("/experiments/demo/rounds/1/gate/").content.decode()
    assert "The gate has not run" in text
    assert "It needs train, analyse and validate" in text
    assert (
        "Not run: needs train" in viewer_client.get("/experiments/demo/rounds/1/").content.decode()
    )
    made.rounds[1].stages.filter(position__lt=4).update(state="succeeded")
    text = viewer_client.get("/experiments/demo/rounds/1/gate/").content.decode()
    assert "What it needs is there" in text
    assert "Not run yet" in viewer_client.get("/experiments/demo/rounds/1/").content.decode()


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ("published", "masked rollout against its bare one"),
        ("standard", "two masked rollouts against each other"),
    ],
)
def test_the_forest_names_the_estimator_of_the_profile(
    gate: GateRun, viewer_client: Client, profile: str, said: str
) -> None:
    GateRun.objects.filter(pk=gate.pk).update(profile=profile)
    assert said in viewer_client.get(PATH).content.decode()


def test_the_interval_of_a_gate_names_its_method_wherever_it_stands(
    gate: GateRun, viewer_client: Client
) -> None:
    panel = Page(viewer_client.get("/experiments/demo/rounds/1/").content.decode()).text
    assert "paired over tasks, normal 95 % interval" in panel
    assert "95 % (normal)" in Page(viewer_client.get("/gates/").content.decode()).text
    assert "normal 95 % interval" in Page(viewer_client.get(PATH).content.decode()).text


def test_what_is_kept_is_split_into_selected_and_held(gate: GateRun, viewer_client: Client) -> None:
    kept = list(gate.contributions.filter(status="selected").order_by("order"))
    for row in kept[2:]:
        row.status = "held"
        row.save()
    found = forest(gate, list(gate.contributions.all()), experiment="demo")
    assert (found.kept, found.selected, found.held) == (len(kept), 2, len(kept) - 2)
    text = " ".join(Page(viewer_client.get(PATH).content.decode()).text.split())
    assert f"{len(kept)} kept of {found.total}: 2 selected, {len(kept) - 2} held" in text
