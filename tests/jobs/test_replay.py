"""Counterfactual replay: the embedded engine plays a task again; nothing else counts it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client

from intraskill_web.core.models import AuditEvent
from intraskill_web.episodes.models import Episode, Replay
from intraskill_web.episodes.replay_outcomes import wilson
from intraskill_web.experiments.flow import new_round
from intraskill_web.experiments.making import create_experiment
from intraskill_web.skills.models import ChunkRevision, Curriculum
from intraskill_web.skills.publish import publish_bank
from jobs import queue
from jobs.episodes import replay as replay_job
from jobs.episodes.replay import run_replay
from tests.trainer.engines_slime.test_endpoint import ChatServer, call, reply_with
from tests.web.traces import make_trace
from trainer.errors import InputError
from trainer.experiment_config import ExperimentConfig
from trainer.files import append_jsonl, write_json
from trainer.lock import exclusive
from trainer.shop.world import load_world

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
    title = ChunkRevision.objects.get(skill_id=chunk).title
    assert f'title="{chunk}">+ {title}</span>' in text
    assert f"{won} / 3" in text and "0 / 1" in text and "start, before training" in text
    before = replay.outcomes
    run_replay(replay.pk)  # handed in twice: the files are there, the result is the same
    replay.refresh_from_db()
    assert replay.outcomes == before
    assert AuditEvent.objects.filter(action="episode.replay").count() == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n": "0"}, "n must be between 1 and 64"),
        ({"n": "many"}, "many is not a whole number"),
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
    for value, status in (("x", 400), ("\u00b2", 400), ("999", 302), (str(replay.pk), 302)):
        assert operator_client.post(address, {"again": value}).status_code == status
    replay.refresh_from_db()
    assert (handed, replay.state, replay.error) == ([replay.pk], "requested", "")


def test_a_replay_that_is_being_played_is_left_to_who_plays_it(
    episode: Episode, operator_client: Client, handed: list[int]
) -> None:
    replay = Replay.objects.create(episode=episode, checkpoint="start/none", n=2, state="running")
    with exclusive(replay.folder):
        operator_client.post(f"/episodes/{episode.pk}/replay/", {"again": str(replay.pk)})
        assert handed == [replay.pk]
        run_replay(replay.pk)
        replay.refresh_from_db()
        assert (replay.state, replay.error) == ("running", "")
    run_replay(replay.pk)  # its worker is gone
    replay.refresh_from_db()
    assert replay.state == "failed"


def test_a_fault_of_ours_leaves_no_replay_running(
    episode: Episode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def outcomes_of(_folder: Path) -> None:
        raise KeyError("job")

    monkeypatch.setattr(replay_job, "_play", lambda *_: "")
    monkeypatch.setattr(replay_job, "outcomes_of", outcomes_of)
    replay = Replay.objects.create(episode=episode, checkpoint="start/checkpoint", n=2)
    with pytest.raises(KeyError):
        run_replay(replay.pk)
    replay.refresh_from_db()
    assert (replay.state, replay.error) == ("failed", "KeyError: 'job'")


def test_an_episode_from_elsewhere_says_why_it_cannot_be_replayed(
    episode: Episode, operator_client: Client
) -> None:
    Episode.objects.update(round=None)
    text = operator_client.get(f"/episodes/{episode.pk}/replay/").content.decode()
    assert "belongs to no round" in text


def test_the_interval_is_wilsons() -> None:
    assert wilson(0, 0) == (None, None)
    low, high = wilson(8, 10)
    assert (round(low or 0, 3), round(high or 0, 3)) == (0.49, 0.943)
    assert wilson(10, 10)[1] == pytest.approx(1.0)


@pytest.fixture
def server(episode: Episode, home: Path) -> Iterator[ChatServer]:
    """A chat server that gives up at once, named in ``endpoints.yaml``; its shop is bundled."""
    answers = reply_with(tool_calls=[call("search", '{"query": "杯"}')])
    made = ChatServer(lambda body: (200, {}, answers))
    name_server(home, made.url)
    task = load_world("standard").split("val")[0]
    Episode.objects.update(task_id=task)
    yield made
    made.http.shutdown()
    made.http.server_close()


def name_server(home: Path, url: str, **settings: object) -> None:
    endpoint = {"base_url": url, "model": "iter80", "attempts": 1, **settings}
    model = {"endpoint": endpoint, "world": {"profile": "standard"}}
    write_json(home / "endpoints.yaml", {"servers": {"gpu-7": model}})


def test_a_served_model_plays_a_replay_and_its_transcripts_are_read(
    episode: Episode, server: ChatServer, operator_client: Client, handed: list[int]
) -> None:
    address = f"/episodes/{episode.pk}/replay/"
    assert f"gpu-7: iter80 at {server.url}" in operator_client.get(address).content.decode()
    form = {"checkpoint": "served:gpu-7", "n": "2", "chunk": ids(episode)[0]}
    assert operator_client.post(address, form).status_code == 302
    [replay] = Replay.objects.all()
    run_replay(replay.pk)
    replay.refresh_from_db()
    assert (replay.error, replay.state, len(replay.outcomes)) == ("", "succeeded", 2)
    assert {body["model"] for body in server.bodies} == {"iter80"}
    listed = operator_client.get(f"{address}{replay.pk}/").content.decode()
    assert f'href="{address}{replay.pk}/1/"' in listed and "0 / 2" in listed
    html = operator_client.get(f"{address}{replay.pk}/1/").content.decode()
    assert html.count('class="turn"') == replay.outcomes[1]["turns"] + 1 and "杯" in html
    assert operator_client.get(f"{address}{replay.pk}/2/").status_code == 404
    other = f"/episodes/{episode.pk + 1}/replay/{replay.pk}/1/"
    assert operator_client.get(other).status_code == 404


@pytest.mark.parametrize(
    ("status", "reply", "words"),
    [
        (401, {}, "refuses the key (HTTP 401)"),
        (200, {"data": [{"id": "other"}]}, "served there: other"),
        (500, {}, "HTTP 500"),
    ],
)
def test_a_server_that_cannot_play_is_named_before_anything_is_played(
    episode: Episode, server: ChatServer, status: int, reply: object, words: str
) -> None:
    server.models = (status, reply)
    replay = Replay.objects.create(episode=episode, checkpoint="served:gpu-7", n=1)
    run_replay(replay.pk)
    replay.refresh_from_db()
    assert replay.state == "failed" and words in replay.error
    assert server.bodies == []


def test_a_server_that_is_away_or_unknown_fails_with_its_address(
    episode: Episode, home: Path
) -> None:
    name_server(home, "http://127.0.0.1:9/v1")
    replay = Replay.objects.create(episode=episode, checkpoint="served:gpu-7", n=1)
    run_replay(replay.pk)
    replay.refresh_from_db()
    assert "does not answer" in replay.error and "http://127.0.0.1:9/v1" in replay.error
    Replay.objects.update(checkpoint="served:nobody")
    run_replay(replay.pk)
    replay.refresh_from_db()
    assert "names no such server" in replay.error and "endpoints.yaml" in replay.error


def test_whatever_a_server_answers_its_words_are_kept(
    episode: Episode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play(*_: object) -> str:
        raise InputError("HTTP 400: \x00 \ud83d full")

    monkeypatch.setattr(replay_job, "_play", play)
    replay = Replay.objects.create(episode=episode, checkpoint="start/checkpoint", n=1)
    run_replay(replay.pk)
    replay.refresh_from_db()
    assert (replay.state, replay.error) == ("failed", "HTTP 400: \ufffd ? full")


def test_a_server_that_breaks_while_it_plays_says_so(
    episode: Episode, server: ChatServer, operator_client: Client
) -> None:
    server.answer = lambda body: (400, {}, {"error": "context is full"})
    replay = Replay.objects.create(episode=episode, checkpoint="served:gpu-7", n=1)
    run_replay(replay.pk)
    replay.refresh_from_db()
    assert replay.state == "failed" and "every episode failed technically" in replay.error
    assert "aborted" in replay.error or "context is full" in replay.error
    html = operator_client.get(f"/episodes/{episode.pk}/replay/{replay.pk}/0/").content.decode()
    assert "Technical failure" in html


def test_a_broken_list_of_servers_is_said_and_the_page_stays(
    episode: Episode, home: Path, operator_client: Client
) -> None:
    (home / "endpoints.yaml").write_text("servers: {a: {endpoint: {model: x}}}")
    html = operator_client.get(f"/episodes/{episode.pk}/replay/").content.decode()
    assert "servers.a.endpoint.base_url" in html and "start, before training" in html


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://me:hunter2@gpu-7/v1", "base_url holds a password"),
        ("gpu-7:30000/v1", "base_url begins with http"),
        ("http://[::1/v1", "base_url is no address"),
    ],
)
def test_an_address_with_a_password_is_refused_and_never_shown(
    episode: Episode, home: Path, viewer_client: Client, url: str, words: str
) -> None:
    name_server(home, url)
    html = viewer_client.get(f"/episodes/{episode.pk}/replay/").content.decode()
    assert words in html and "hunter2" not in html


def test_the_private_goal_of_a_replay_is_for_those_who_may_see_it(
    episode: Episode, viewer_client: Client, operator_client: Client
) -> None:
    replay = Replay.objects.create(
        episode=episode, checkpoint="x", n=1, skill_ids=[], state="succeeded"
    )
    hostile = "<script>alert(1)</script>\x00\u202e"
    trace = make_trace("task-000001__sample-000", 1, 0, [], content=hostile)
    append_jsonl(replay.folder / "run" / "traces.jsonl", [trace])
    with (replay.folder / "run" / "traces.jsonl").open("ab") as handle:
        handle.write(b'[1]\n{"schema_version": "shopsimrl-episode-v4"}\n{"torn')
    address = f"/episodes/{episode.pk}/replay/{replay.pk}/0/"
    text = viewer_client.get(address).content.decode()
    assert "Bought and wanted" not in text and "<script>alert" not in text
    for query in ("?format=json", "?format=json&with=original"):
        text = viewer_client.get(address + query).content.decode()
        assert '"goal"' not in text and "price_upper" not in text and "r_att" in text
    assert "Bought and wanted" in operator_client.get(address).content.decode()
    assert viewer_client.get(f"/episodes/{episode.pk}/replay/{replay.pk}/").status_code == 200
