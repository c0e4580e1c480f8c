"""The page of the test split: its arms side by side, and the paired differences between them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from django.test import Client
from django.utils.translation import override

from intraskill_web.core.labels import OUTCOMES
from intraskill_web.episodes.models import Episode
from intraskill_web.experiments.models import CheckpointScore
from intraskill_web.reports.site.words import METRICS
from tests.web.factories import Made
from trainer.files import write_json


def test_truncated_turns_are_not_called_as_failed_episodes_are(
    made: Made, viewer_client: Client
) -> None:
    folder = "round-001/test/bare"
    CheckpointScore.objects.create(
        experiment=made.experiment, round=made.rounds[1], step=24, split="test", arm="bare",
        n=40, success=0.6, reward=0.7, path=folder,
    )  # fmt: skip
    summary = {"behavior": {"policy_failures": 3}}
    write_json(made.experiment.folder / folder / "summary.json", summary)
    path = "/experiments/demo/test/"
    assert viewer_client.get(f"{path}?format=json").json()["arms"][0]["policy_failures"] == 3
    for language in ("en", "zh-hans"):
        with override(language):
            failed = str(OUTCOMES["failure"]).lower()
            html = viewer_client.get(path, headers={"Accept-Language": language}).content.decode()
            labels = [str(METRICS[k]).lower() for k in ("policy_failures", "policy_failure_rate")]
            assert str(METRICS["policy_failures"]) in html
        assert failed not in html.lower()
        assert not any(failed in label for label in labels)


def play(made: Made, number: int, **arms: Sequence[float]) -> None:
    """The test of a round: what each arm earned, a task a reward."""
    round_ = made.rounds[number]
    for arm, rewards in arms.items():
        path = f"round-{number:03d}/test/{arm}"
        CheckpointScore.objects.create(
            experiment=made.experiment, round=round_, step=6 * (number + 1), split="test",
            arm=arm, n=len(rewards), success=0.0, reward=0.2, path=path,
        )  # fmt: skip
        for task, reward in enumerate(rewards):
            Episode.objects.create(
                experiment=made.experiment, round=round_, purpose="test", arm=arm,
                episode_id=f"{number}-{arm}-{task}", status="completed", task_id=task,
                split="test", reward=reward, success=reward == 1.0, scored=True, path=path,
                line=task,
            )  # fmt: skip


def test_the_test_page_compares_arms_from_episodes(made: Made, viewer_client: Client) -> None:
    path = "/experiments/demo/test/"
    assert "No test yet" in viewer_client.get(path).content.decode()
    play(made, 0, bare=(0.1, 0.2, 0.3), full=(0.4, 0.5, 1.0))
    data = viewer_client.get(f"{path}?format=json").json()
    found = {row["metric"]: row["difference"] for row in data["differences"]}
    assert found["reward"] == pytest.approx((0.3 + 0.3 + 0.7) / 3)
    assert found["r_success"] == pytest.approx(1 / 3)
    assert viewer_client.get(path).status_code == 200


def test_another_test_is_compared_apart_from_the_one_before(
    made: Made, viewer_client: Client
) -> None:
    path = "/experiments/demo/test/"
    play(made, 0, bare=(0.1, 0.2, 0.3), full=(0.4, 0.5, 1.0))
    first = viewer_client.get(f"{path}?format=json").json()["differences"]
    play(made, 1, bare=(0.5, 0.5, 0.5), full=(0.5, 0.5, 0.6))
    both = viewer_client.get(f"{path}?format=json").json()["differences"]
    assert both[: len(first)] == first
    rewards = {row["step"]: row["difference"] for row in both if row["metric"] == "reward"}
    assert rewards == {6: pytest.approx(1.3 / 3), 12: pytest.approx(0.1 / 3)}
    html = viewer_client.get(path).content.decode()
    assert "experiment=demo&amp;round=1&amp;purpose=test&amp;arm=full" in html
