"""Counterfactual replay: the embedded engine plays a task again; nothing else counts it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from django.test import Client

from intraskill_web.core.models import AuditEvent
from intraskill_web.episodes.models import Episode, Replay
from intraskill_web.episodes.replay import wilson
from intraskill_web.experiments.flow import new_round
from intraskill_web.experiments.services import create_experiment
from intraskill_web.skills.models import Curriculum
from intraskill_web.skills.publish import publish_bank
from jobs import queue
from jobs.episodes.replay import run_replay
from trainer.config import ExperimentConfig

MINI = Path(__file__).resolve().parents[2] / "configs" / "mini"


@pytest.fixture
def episode(transactional_db: None, home: Path) -> Episode:
    """A validation episode of a run whose first round has its bank and its checkpoint."""
    start = {"skillbank": MINI / "skillbank.json", "checkpoint": MINI / "checkpoint"}
    config = {"name": "small", "rounds": 1, "start": start, "threads": 1}
    experiment = create_experiment(ExperimentConfig.model_validate(config))
    round_ = new_round(experiment, 0)
    bank = experiment.folder / "round-000" / "skillbank.json"
    bank.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(MINI / "skillbank.json", bank)
    version = publish_bank(experiment, bank, number=0, from_round=None)
    Curriculum.objects.create(round=round_, version=version, state_id="s", q=0.2, path="x")
    return Episode.objects.create(
        experiment=experiment,
        round=round_,
        purpose="bare",
        arm="bare",
        episode_id="task-000001__sample-000",
        status="completed",
        task_id=_task(),
        split="val",
        scored=True,
        success=False,
        reward=0.0,
        outcome="failure",
        path="round-000/validate/bare/traces.jsonl",
        line=0,
    )


def _task() -> int:
    from trainer.shop.world import load_world

    return load_world("mini").split("val")[0]


def ids(episode: Episode) -> list[str]:
    entries = episode.round.curriculum.version.entries  # type: ignore[union-attr]
    return list(entries.order_by("order").values_list("revision__skill_id", flat=True))


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    jobs: list[int] = []
    monkeypatch.setattr(queue, "enqueue_work_on_commit", lambda name, pk, job: jobs.append(pk))
    return jobs


def test_a_replay_is_asked_for_played_and_shown_beside_the_original(
    episode: Episode, operator_client: Client, handed: list[int]
) -> None:
    chunk = ids(episode)[0]
    address = f"/episodes/{episode.pk}/replay/"
    form = {"chunk": [chunk], "checkpoint": "start/checkpoint", "n": "3"}
    assert operator_client.post(address, form).status_code == 302
    [replay] = Replay.objects.all()
    assert handed == [replay.pk]
    run_replay(replay.pk)
    replay.refresh_from_db()
    assert (replay.state, replay.error, len(replay.outcomes)) == ("succeeded", "", 3)
    assert {o["success"] for o in replay.outcomes} <= {True, False}
    assert Episode.objects.count() == 1
    text = " ".join(operator_client.get(address).content.decode().split())
    won = sum(o["success"] for o in replay.outcomes)
    assert f"+{chunk}" in text and f"{won} / 3" in text and "0 / 1" in text
    before = replay.outcomes
    run_replay(replay.pk)  # handed in twice: the files are there, the result is the same
    replay.refresh_from_db()
    assert replay.outcomes == before
    assert AuditEvent.objects.filter(action="episode.replay").count() == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n": "0"}, "n must be between 1 and 64"),
        ({"n": "many"}, "n must be between 1 and 64"),
        ({"chunk": "nobody"}, "a chunk is not in the bank"),
        ({"checkpoint": "../../etc"}, "this checkpoint is not there"),
    ],
)
def test_what_cannot_be_played_is_refused(
    episode: Episode,
    operator_client: Client,
    handed: list[int],
    changes: dict[str, str],
    words: str,
) -> None:
    form = {"checkpoint": "start/checkpoint", "n": "2"} | changes
    answer = operator_client.post(f"/episodes/{episode.pk}/replay/", form)
    assert answer.status_code == 400 and words in answer.content.decode()
    assert (handed, Replay.objects.count()) == ([], 0)


def test_only_operators_start_replays_and_a_failure_is_kept_in_words(
    episode: Episode, viewer_client: Client, handed: list[int]
) -> None:
    address = f"/episodes/{episode.pk}/replay/"
    assert viewer_client.post(address, {"n": "2"}).status_code == 403
    assert "Only operators" in viewer_client.get(address).content.decode()
    replay = Replay.objects.create(episode=episode, checkpoint="start/none", n=2)
    run_replay(replay.pk)
    replay.refresh_from_db()
    assert replay.state == "failed" and "checkpoint" in replay.error
    viewer_client.post(address, {"again": str(replay.pk)})
    assert handed == []


def test_a_replay_that_failed_is_handed_in_again(
    episode: Episode, operator_client: Client, handed: list[int]
) -> None:
    replay = Replay.objects.create(episode=episode, checkpoint="start/checkpoint", n=2)
    Replay.objects.update(state="failed", error="lost")
    address = f"/episodes/{episode.pk}/replay/"
    for value in ("x", "999", str(replay.pk)):
        assert operator_client.post(address, {"again": value}).status_code == 302
    replay.refresh_from_db()
    assert (handed, replay.state, replay.error) == ([replay.pk], "requested", "")


def test_an_episode_from_elsewhere_says_why_it_cannot_be_replayed(
    episode: Episode, operator_client: Client
) -> None:
    Episode.objects.update(round=None)
    text = operator_client.get(f"/episodes/{episode.pk}/replay/").content.decode()
    assert "its run folder is not here" in text


def test_the_interval_is_wilsons() -> None:
    assert wilson(0, 0) == (None, None)
    low, high = wilson(8, 10)
    assert (round(low or 0, 3), round(high or 0, 3)) == (0.49, 0.943)
    assert wilson(10, 10)[1] == pytest.approx(1.0)
