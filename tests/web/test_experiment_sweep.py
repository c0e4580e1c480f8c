"""Sweeps: one click makes an experiment an arm and seed; the page compares them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db.models import QuerySet
from django.test import Client
from django.utils import timezone

from intraskill_web.experiments.models import (
    Attempt,
    CheckpointScore,
    Experiment,
    Stage,
    Sweep,
)
from intraskill_web.experiments.models.sweeps import CLAIM
from intraskill_web.experiments.moves import move
from intraskill_web.experiments.presets import LABELS, arm_config, preset, presets
from intraskill_web.experiments.sweep_page import Arm, Spread, arms_of, comparison, legend
from intraskill_web.experiments.sweeps import base_config, start_sweep
from jobs import queue, sweeps
from jobs.models import Host
from jobs.queue import QueueStatus
from jobs.transitions import State
from tests.web.html import Page
from trainer.errors import InputError

FORM = {"name": "night", "base": "mini/quick", "arms": ["published", "plain-grpo"], "seeds": "1 2"}


@pytest.fixture
def sweep(db: None, home: Path) -> Sweep:
    made = start_sweep("s", base_config("mini/quick"), arms=["published", "no-mask"], seeds=[1, 2])
    sweeps.begin(made)
    return made


def scored(sweep: Sweep, values: dict[tuple[str, int], float]) -> None:
    for experiment in sweep.experiments.all():
        round_ = experiment.rounds.get()
        CheckpointScore.objects.create(
            experiment=experiment, round=round_, step=2, split="val", arm="bare", n=40,
            success=values[experiment.arm, experiment.seed], reward=0.5, path="x",
        )  # fmt: skip


def test_every_preset_makes_a_valid_configuration() -> None:
    base = base_config("mini/analyst")
    made = {p.key: arm_config(base, p, seed=5, name=f"x-{p.key}") for p in presets()}
    assert list(made) == list(LABELS)
    assert made["published"].train == base.train and made["published"].gate == base.gate
    assert made["plain-grpo"].curriculum.skill_free_probability == 1.0
    assert not made["plain-grpo"].train.rollout.full_skill_retry
    assert (made["fixed-s0"].analyst.kind, made["fixed-s0"].gate.mode) == ("none", "keep")
    assert made["no-mask"].curriculum.rho_min == made["no-mask"].curriculum.rho_max == 1.0
    assert made["no-gate"].gate.mode == "accept"
    assert made["no-gate"].analyst.kind == base.analyst.kind != "none"
    assert made["adaptive-q"].curriculum.controller == "gap_closing"
    assert len({config.mask_seed for config in made.values()}) == 1, "arms of a seed share luck"


def test_an_unknown_arm_is_refused_with_those_that_exist() -> None:
    with pytest.raises(InputError, match="Known: published"):
        preset("nothing")


def test_a_sweep_makes_and_starts_an_experiment_an_arm_and_seed(sweep: Sweep) -> None:
    found = {(e.arm, e.seed): e for e in sweep.experiments.all()}
    assert set(found) == {(a, s) for a in ("published", "no-mask") for s in (1, 2)}
    assert {e.state for e in found.values()} == {"running"}
    assert found["no-mask", 2].name == "s-no-mask-2"
    assert found["no-mask", 2].config["curriculum"]["rho_min"] == 1.0
    assert (found["no-mask", 2].folder / "start" / "skillbank.json").exists()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "a b"}, "name"),
        ({"name": "x" * 41}, "name"),
        ({"arms": []}, "arms"),
        ({"arms": ["published", "published"]}, "arms"),
        ({"arms": ["nothing"]}, "arms"),
        ({"seeds": []}, "seeds"),
        ({"seeds": [-1]}, "seeds"),
        ({"seeds": [2**63]}, "seeds"),
        ({"seeds": list(range(65))}, "seeds"),
    ],
)
def test_a_slip_is_named_and_starts_nothing(
    db: None, home: Path, changes: dict[str, Any], field: str
) -> None:
    asked = {"name": "s", "arms": ["published"], "seeds": [1]} | changes
    name = asked.pop("name")
    with pytest.raises(InputError) as refusal:
        start_sweep(name, base_config("mini/quick"), **asked)
    assert refusal.value.field == field
    assert not Sweep.objects.exists() and not Experiment.objects.exists()


def test_a_seed_beyond_the_database_is_refused_before_it_is_said_to_start(
    db: None, home: Path, operator_client: Client
) -> None:
    answer = operator_client.post("/sweeps/", FORM | {"seeds": str(2**63)})
    assert answer.status_code == 409 and "a number from 0 to" in answer.content.decode()
    start_sweep("s", base_config("mini/quick"), arms=["published"], seeds=[2**63 - 1])


def test_whatever_goes_wrong_while_it_is_made_no_folder_stays_and_the_name_is_free(
    db: None, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {"arms": ["published"], "seeds": [1, 2]}
    save = Experiment.save

    def fails(experiment: Experiment, *arguments: Any, **options: Any) -> None:
        if experiment.seed == 2:
            raise OverflowError("too large")
        save(experiment, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Experiment, "save", fails)
        with pytest.raises(OverflowError):
            start_sweep("s", base_config("mini/quick"), **asked)
    assert list((home / "runs").iterdir()) == [] and not Sweep.objects.exists()
    start_sweep("s", base_config("mini/quick"), **asked)


def test_of_two_sweeps_of_one_name_at_once_the_second_is_refused(
    db: None, home: Path, operator_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both saw that the name is free; the first was made since."""
    first = start_sweep("night", base_config("mini/quick"), arms=["published"], seeds=[1])
    with monkeypatch.context() as patch:
        patch.setattr(QuerySet, "exists", lambda _rows: False)
        refused = operator_client.post("/sweeps/?format=json", FORM | {"seeds": "2"})
    assert refused.status_code == 409 and "a sweep of this name exists" in refused.json()["error"]
    assert [e.folder.exists() for e in first.experiments.all()] == [True]
    assert len(list((home / "runs").iterdir())) == 1


def test_a_sweep_can_begin_from_an_experiment(sweep: Sweep) -> None:
    Experiment.objects.filter(name="s-no-mask-1").update(sweep=None)
    base = base_config("s-no-mask-1")
    assert base.start.skillbank.is_absolute() and base.start.skillbank.exists()
    start_sweep("again", base, arms=["published"], seeds=[3])
    with pytest.raises(InputError, match="no such base"):
        base_config("nobody")


def test_the_spread_is_over_seeds_and_the_difference_is_paired() -> None:
    first, second = Arm("a", "A"), Arm("b", "B")
    for seed, (x, y) in enumerate([(0.5, 0.6), (0.7, 0.9), (0.6, 0.6)]):
        first.success[seed, 20, "val"] = x
        second.success[seed, 20, "val"] = y
    second.success[9, 20, "val"] = 1.0  # the first arm has not come so far
    one, two = comparison([first, second]).data()
    assert one["mean"] == pytest.approx(0.6) and one["sd"] == pytest.approx(0.1)
    assert one["difference"] is None
    assert (two["seeds"], two["pairs"]) == (4, 3)
    assert two["difference"] == pytest.approx(0.1)
    half = 4.303 * 0.1 / 3**0.5
    assert two["difference_low"] == pytest.approx(0.1 - half, abs=1e-4)


def test_one_seed_has_no_spread() -> None:
    spread = Spread.of([0.5])
    assert spread and spread.sd is None and spread.half_width is None
    assert Spread.of([]) is None


def test_the_page_compares_the_arms_and_opens_what_it_counts(
    sweep: Sweep, viewer_client: Client
) -> None:
    address = "/sweeps/s/"
    assert "Nothing is measured yet" in viewer_client.get(address).content.decode()
    values = {
        ("published", 1): 0.5,
        ("published", 2): 0.7,
        ("no-mask", 1): 0.4,
        ("no-mask", 2): 0.5,
    }
    scored(sweep, values)
    html = viewer_client.get(address).content.decode()
    page = Page(html)
    assert page.policy_faults() == [] and "<svg" in html
    assert [label for _line, label in legend(arms_of(sweep.arms, [], []))] == [
        "The method", "No mask"]  # fmt: skip
    assert html.count('<path class="l2" d="M0 5H20"/>') == 1, "a key for the second line"
    assert "Student's 95 %, from" in page.text, "the interval names its method"
    hrefs = [href for href, _text in page.links]
    assert any("experiment=s-no-mask-1" in href and "purpose=bare" in href for href in hrefs)
    rows = viewer_client.get(f"{address}?format=json").json()["comparison"]
    assert [row["arm"] for row in rows] == ["The method", "No mask"]
    assert rows[1]["difference"] == pytest.approx(-0.15)
    csv = viewer_client.get(f"{address}?format=csv").content.decode().splitlines()
    assert csv[0].startswith("arm,step,split,seeds,mean,sd") and len(csv) == 3


def test_the_page_asks_a_fixed_number_of_queries(
    sweep: Sweep, viewer_client: Client, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(12):
        viewer_client.get("/sweeps/s/")


def test_a_sweep_starts_once_its_cost_was_seen_and_viewers_cannot(
    db: None, home: Path, viewer_client: Client, operator_client: Client
) -> None:
    assert viewer_client.get("/sweeps/").status_code == 200
    assert viewer_client.post("/sweeps/", FORM).status_code == 403
    shown = operator_client.post("/sweeps/", FORM)
    assert shown.status_code == 200 and not Sweep.objects.exists()
    seen = shown.context["order"].seen
    other = operator_client.post("/sweeps/", FORM | {"seeds": "1 2 3", "seen": seen})
    assert other.status_code == 200 and not Sweep.objects.exists(), "another order was seen"
    done = operator_client.post("/sweeps/", FORM | {"seen": seen})
    assert done["Location"] == "/sweeps/night/"
    assert Experiment.objects.count() == 4
    again = operator_client.post("/sweeps/", FORM | {"seen": seen})
    assert again.status_code == 409 and "a sweep of this name exists" in again.content.decode()
    bad = operator_client.post("/sweeps/?format=json", FORM | {"name": "n2", "seeds": "one"})
    assert bad.status_code == 409 and "whole numbers" in bad.json()["error"]
    listed = operator_client.get("/sweeps/?format=json").json()["sweeps"]
    assert listed[0]["arms"] == ["published", "plain-grpo"]


def test_a_program_starts_a_sweep_at_once_and_reads_its_cost(
    db: None, home: Path, operator_client: Client
) -> None:
    answer = operator_client.post("/sweeps/?format=json", FORM).json()
    assert answer["experiments"][0] == "night-published-1"
    assert (answer["estimate"]["experiments"], answer["estimate"]["seconds"]) == (4, None)


def test_the_form_keeps_what_was_typed_beside_what_is_wrong(
    db: None, home: Path, operator_client: Client
) -> None:
    answer = operator_client.post("/sweeps/", FORM | {"name": "a b"})
    html = answer.content.decode()
    assert answer.status_code == 409 and 'value="a b"' in html and 'value="1 2"' in html
    assert Page(html).policy_faults() == []


def test_an_arm_that_waits_says_for_what_and_in_which_place(
    sweep: Sweep, viewer_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the pipeline all run; one works, and the others wait for it."""
    monkeypatch.setattr(queue, "status", lambda: QueueStatus(up=True, waiting=3, workers=()))
    Host.objects.create(name="gpu-07", workers=[{"pid": 1}])
    attempts = list(Attempt.objects.order_by("pk"))
    Attempt.objects.update(host="gpu-07", queue="q:gpu-07:gpu", state=State.QUEUED)
    Stage.objects.exclude(state="").update(state=State.QUEUED)
    for state in (State.STARTING, State.RUNNING):
        assert move(attempts[0], state, message="step 3 of 20")
    html = viewer_client.get("/sweeps/s/").content.decode()
    assert html.count("s-running") == 1 and html.count("s-waiting") == 3
    assert "Waits at gpu-07 for Freeze curriculum of s-published-1 · place 1 of 3" in html
    assert "place 3 of 3" in html
    runs = viewer_client.get("/sweeps/s/?format=json").json()["runs"]
    assert (
        runs["s-no-mask-1"]["state"] == "waiting" and "place 1 of 3" in runs["s-no-mask-1"]["why"]
    )
    for page in ("/", "/experiments/s-no-mask-1/", "/experiments/s-no-mask-1/rounds/0/"):
        told = viewer_client.get(page).content.decode()
        assert "s-waiting" in told and "Waits at gpu-07 for Freeze curriculum" in told, page


def test_a_reason_on_a_page_that_is_polled_follows_the_others(
    sweep: Sweep, viewer_client: Client
) -> None:
    """Nothing of the waiting experiment's own moves; what it waits for does."""
    own = "/experiments/s-no-mask-1/"
    tags = {p: viewer_client.get(p)["ETag"] for p in ("/sweeps/s/", own, f"{own}rounds/0/")}
    for page, tag in tags.items():
        poll = viewer_client.get(f"{page}?part=live", headers={"If-None-Match": tag})
        assert poll.status_code == 304, page
    assert move(Attempt.objects.earliest("pk"), State.STARTING)
    for page, tag in tags.items():
        poll = viewer_client.get(f"{page}?part=live", headers={"If-None-Match": tag})
        assert poll.status_code == 200


def test_a_sweep_whose_experiments_are_looked_at_says_how_far_it_is(
    db: None, home: Path, viewer_client: Client, operator_client: Client
) -> None:
    made = start_sweep("s", base_config("mini/quick"), arms=["published", "no-mask"], seeds=[1])
    html = viewer_client.get("/sweeps/s/").content.decode()
    assert "0 of 2 experiments are looked at" in html and 'data-active="1"' in html
    assert "s-published-1 is looked at next" in html and Page(html).policy_faults() == []
    Sweep.objects.update(claimed_at=timezone.now())
    told = viewer_client.get("/sweeps/s/?part=live")
    assert "is under way" in told.content.decode()
    Sweep.objects.update(claimed_at=timezone.now() - 2 * CLAIM)  # its process was killed
    later = viewer_client.get("/sweeps/s/?part=live", headers={"If-None-Match": told["ETag"]})
    assert later.status_code == 200 and "is under way" not in later.content.decode()
    sweeps.begin(made)
    assert "are looked at" not in viewer_client.get("/sweeps/s/").content.decode()


def test_an_arm_that_is_held_says_why_and_can_be_withdrawn(
    db: None, home: Path, viewer_client: Client, operator_client: Client
) -> None:
    start_sweep("s", base_config("mini/quick"), arms=["published", "no-mask"], seeds=[1])
    Experiment.objects.filter(arm="no-mask").update(hold_reason="the preflight is red: disk")
    html = operator_client.get("/sweeps/s/").content.decode()
    assert "the preflight is red: disk" in html and "/sweeps/s/withdraw/" in html
    assert "/sweeps/s/withdraw/" not in viewer_client.get("/sweeps/s/").content.decode()
    assert viewer_client.post("/sweeps/s/withdraw/").status_code == 403
    assert operator_client.post("/sweeps/s/withdraw/")["Location"] == "/sweeps/"
    assert not Sweep.objects.exists() and not Experiment.objects.exists()


def test_withdrawing_when_all_have_begun_is_refused(sweep: Sweep, operator_client: Client) -> None:
    refused = operator_client.post("/sweeps/s/withdraw/?format=json")
    assert refused.status_code == 409 and "have begun" in refused.json()["error"]
    assert Experiment.objects.count() == 4


def test_an_arm_without_gate_and_analyst_says_so_and_nothing_else(
    db: None, home: Path, viewer_client: Client
) -> None:
    made = start_sweep("s", base_config("mini/quick"), arms=["published", "fixed-s0"], seeds=[1])
    sweeps.begin(made)
    Stage.objects.update(state=State.SUCCEEDED)
    told = viewer_client.get("/experiments/s-fixed-s0-1/rounds/0/").content.decode()
    assert "No gate: the bank stays as it is" in told and "every task once more" not in told
    assert "gates so far" not in told and "no analyst: no candidates" in told
    told = viewer_client.get("/experiments/s-published-1/rounds/0/").content.decode()
    assert "every task once more, masked" in told and "no gate" not in told
