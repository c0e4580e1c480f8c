"""The gap between skill-free and assisted, paired by task, per checkpoint and round."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from intraskill_web.episodes.models import Episode
from intraskill_web.experiments.models import CheckpointScore, Experiment
from intraskill_web.skills.internalisation import build
from tests.web.factories import Made
from tests.web.html import Page
from trainer.compare.paired import Transitions, newcombe

PATH = "/experiments/demo/internalisation/"


def play(made: Made, arm: str, wins: list[bool]) -> None:
    round_ = made.rounds[0]
    Episode.objects.filter(round=round_, purpose=arm).delete()
    Episode.objects.bulk_create(
        Episode(
            experiment=made.experiment,
            round=round_,
            episode_id=f"{arm}-{task}",
            purpose=arm,
            arm=arm,
            task_id=task,
            sample_id=0,
            split="val",
            scored=True,
            success=won,
            reward=float(won),
            path=f"{arm}.jsonl",
            line=task,
        )
        for task, won in enumerate(wins)
    )


def test_the_gap_is_paired_by_task(made: Made) -> None:
    play(made, "bare", [True, True, False, False, False, True])
    play(made, "full", [True, True, True, True, False])
    (row,) = [r for r in build(made.experiment).checkpoints if r.step == 12]
    assert row.gap.paired == Transitions(gain=2, loss=0, both=2, neither=1)
    assert row.gap.value == pytest.approx(2 / 5)
    assert row.gap.interval == newcombe(Transitions(2, 0, 2, 1))


def test_every_page_tells_the_same_gap_whichever_tasks_each_arm_played(
    made: Made, viewer_client: Client
) -> None:
    bare = [True] * 11 + [False] * 9 + [True] * 9 + [False] * 11
    for arm, wins in (("bare", bare), ("full", [True] * 15 + [False] * 5)):
        play(made, arm, wins)
        rate = sum(wins) / len(wins)
        CheckpointScore.objects.filter(step=12, arm=arm).update(n=len(wins), success=rate)
    expected = pytest.approx(0.2)  # 0.75 - 0.55 on the 20 tasks of both, not the rates' 0.25
    for _ in range(2):  # computed, then known
        (row,) = [r for r in build(made.experiment).checkpoints if r.step == 12]
        assert row.gap.value == expected
    twin: dict[str, Any] = viewer_client.get("/experiments/demo/?format=json").json()
    (told,) = [r for r in twin["checkpoints"] if r["step"] == 12]
    assert (told["gap"], told["pairs"]) == (expected, 20)
    assert (told["low"], told["high"]) == pytest.approx(row.gap.interval)
    assert "+0.200" in viewer_client.get("/experiments/demo/").content.decode()


def test_every_interval_names_its_method(made: Made, viewer_client: Client) -> None:
    play(made, "bare", [True, True, False, False, False, True])
    play(made, "full", [True, True, True, True, False])
    text = Page(viewer_client.get(PATH).content.decode()).text
    assert "Wilson's 95 % interval" in text and "Newcombe's" in text and "normal 95 %" in text


def test_without_episodes_it_is_a_difference_of_rates_and_says_so(
    made: Made, viewer_client: Client
) -> None:
    CheckpointScore.objects.filter(step=12, arm="bare").update(n=400, success=0.6)
    CheckpointScore.objects.filter(step=12, arm="full").update(n=400, success=0.7)
    (row,) = [r for r in build(made.experiment).checkpoints if r.step == 12]
    assert row.gap.paired is None
    assert row.gap.value == pytest.approx(0.1)
    low, high = row.gap.interval
    assert low == pytest.approx(0.034, abs=0.002)  # Newcombe, method 10 for independent rates
    assert high == pytest.approx(0.165, abs=0.002)
    assert "not paired" in viewer_client.get(PATH).content.decode()


def test_in_training_the_group_is_the_unit(made: Made) -> None:
    found = {row.round: row for row in build(made.experiment).training}
    rows = Episode.objects.filter(round=made.rounds[0], purpose="train")
    for free, mean, groups in (
        (True, found[0].free, found[0].free_groups),
        (False, found[0].assisted, found[0].assisted_groups),
    ):
        chosen = [e for e in rows if (e.treatment_mode == "skill_free") == free]
        assert groups == len({e.group_index for e in chosen})
        assert mean == pytest.approx(sum(bool(e.success) for e in chosen) / len(chosen))
    low, high = found[0].interval
    assert low < found[0].gap < high


def test_every_number_opens_its_episodes_and_the_twins_hold_them(
    made: Made, viewer_client: Client
) -> None:
    play(made, "bare", [True, False] * 10)
    play(made, "full", [True, True] * 10)
    html = viewer_client.get(PATH).content.decode()
    page = Page(html)
    assert page.policy_faults() == []
    assert any("purpose=full" in href for href, _text in page.links)
    twin: dict[str, Any] = viewer_client.get(f"{PATH}?format=json").json()
    (row,) = [r for r in twin["checkpoints"] if r["step"] == 12]
    assert (row["gap"], row["pairs"], row["gained"], row["lost"]) == (0.5, 20, 10, 0)
    csv = viewer_client.get(f"{PATH}?format=csv&panel=training").content.decode()
    assert csv.startswith("round,free,free_groups,assisted")
    assert PATH in viewer_client.get("/experiments/demo/").content.decode()


def test_an_experiment_without_anything_says_so(viewer_client: Client, home: Any) -> None:
    Experiment.objects.create(name="empty")
    text = viewer_client.get("/experiments/empty/internalisation/").content.decode()
    assert "No checkpoint has been played" in text


def test_it_takes_few_queries(
    made: Made, viewer_client: Client, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(8):
        viewer_client.get(PATH)
