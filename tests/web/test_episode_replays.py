"""Replays in the pages: followed while they are played, and named in words."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client

from intraskill_web.episodes.models import Episode, Replay
from intraskill_web.experiments.models import Stage
from tests.trainer.fakes import FakePolicy, shopper
from tests.trainer.rollout.test_driver import requests
from tests.web.factories import CHUNKS, Made
from tests.web.html import Page
from trainer.files import append_jsonl
from trainer.rollout.driver import run_episodes
from trainer.rollout.live import LiveFile
from trainer.shop.world import load_world


@pytest.fixture
def replay(made: Made, settings: object, tmp_path: Path) -> Iterator[Replay]:
    """A replay of two episodes that is being played, with the whole live file of both."""
    settings.INTRASKILL_HOME = tmp_path  # type: ignore[attr-defined]
    original = Episode.objects.filter(experiment=made.experiment, purpose="bare").first()
    assert original is not None
    original.task_id = 0
    original.save()
    row = Replay.objects.create(
        episode=original, checkpoint="round-000/train/checkpoint", n=2, state="running",
        skill_ids=[CHUNKS[0][0], CHUNKS[8][0]],
    )  # fmt: skip
    live = LiveFile(row.folder / "run" / "live" / "batch.jsonl")
    world = load_world("mini")
    asked = requests(world, 1)
    assert asked[0].job.task_id == 0
    results = run_episodes(world, FakePolicy(shopper()), asked, live=live)
    (row.folder / "whole").write_bytes(live.path.read_bytes())
    append_jsonl(row.folder / "traces", [r.trace for r in results])
    live.path.write_bytes(b"")
    yield row


def tell(row: Replay, count: int) -> str:
    """Let the live file hold this many lines; the address of their episode."""
    told = (row.folder / "whole").read_bytes().splitlines(keepends=True)[:count]
    (row.folder / "run" / "live" / "batch.jsonl").write_bytes(b"".join(told))
    return f"{address(row)}0/"


def address(row: Replay) -> str:
    return f"/episodes/{row.episode_id}/replay/{row.pk}/"


def publish(row: Replay) -> None:
    """What the engine does at the end of the batch."""
    traces = (row.folder / "traces").read_bytes()
    (row.folder / "run" / "traces.jsonl").write_bytes(traces)
    (row.folder / "run" / "live" / "batch.jsonl").unlink()


def test_a_transcript_of_a_replay_advances_while_it_is_played(
    replay: Replay, viewer_client: Client
) -> None:
    page = tell(replay, 0)
    assert 'data-state="waiting"' in viewer_client.get(page).content.decode()
    tell(replay, 3)
    html = viewer_client.get(page).content.decode()
    assert Page(html).policy_faults() == []
    assert 'id="t2"' in html and 'id="t3"' not in html and 'data-state="running"' in html
    tag = {"If-None-Match": viewer_client.get(page, POLL)["ETag"]}
    assert viewer_client.get(page, POLL, headers=tag).status_code == 304
    tell(replay, 4)
    news = viewer_client.get(page, POLL, headers=tag).content.decode()
    assert 'id="t3"' in news and 'id="t1"' not in news
    publish(replay)
    poll = viewer_client.get(page, POLL)
    assert poll["X-Active"] == "0" and f'href="{page}"' in poll.content.decode()
    assert "data-state" not in viewer_client.get(page).content.decode()


def test_breadcrumbs_name_an_episode_as_the_list_does(
    replay: Replay, viewer_client: Client
) -> None:
    name, home = replay.episode.episode_id, f"/episodes/{replay.episode_id}/"
    listed = viewer_client.get(f"/episodes/?task={replay.episode.task_id}").content.decode()
    assert f">{name}<" in listed
    assert f'<li aria-current="page">{name}</li>' in viewer_client.get(home).content.decode()
    pages = (f"{home}tokens/", f"{home}replay/", address(replay), tell(replay, 3))
    found = [viewer_client.get(path).content.decode() for path in pages]
    assert all(f'<li><a href="{home}">{name}</a></li>' in html for html in found)
    assert all(replay.episode.instruction in html for html in found[:3])


POLL = {"part": "live", "from": "2"}


def test_the_private_goal_is_in_no_poll(replay: Replay, viewer_client: Client) -> None:
    page = tell(replay, 3)
    publish(replay)
    line = json.loads((replay.folder / "run" / "traces.jsonl").read_bytes())
    line["final"]["goal"] = {"wish": "hunter2"}
    line["final"]["reward_detail"]["price_upper"] = "hunter2"
    (replay.folder / "run" / "traces.jsonl").write_text(json.dumps(line))
    for part in ("?part=live&from=0", "?part=live&from=0&format=json", "?format=json", ""):
        assert "hunter2" not in viewer_client.get(page + part).content.decode()


@pytest.mark.parametrize("state", ["failed", "succeeded"])
def test_what_nobody_plays_any_more_is_not_called_running(
    replay: Replay, viewer_client: Client, state: str
) -> None:
    Replay.objects.update(state=state)
    html = viewer_client.get(tell(replay, 3)).content.decode()
    assert 'data-state="stopped"' in html and "The replay does not run" in html


def test_the_pages_of_a_replay_tell_of_episodes_that_are_under_way(
    replay: Replay, operator_client: Client
) -> None:
    tell(replay, 3)
    page = address(replay)
    html = operator_client.get(page).content.decode()
    assert f'href="{page}0/"' in html and 'data-active="1"' in html and "0 / 2" in html
    poll = operator_client.get(page, {"part": "live"})
    again = {"If-None-Match": poll["ETag"]}
    assert operator_client.get(page, {"part": "live"}, headers=again).status_code == 304
    publish(replay)
    news = operator_client.get(page, {"part": "live"}, headers=again).content.decode()
    assert "1 / 2" in news and 'id="replay-episodes" hx-swap-oob' in news
    form = operator_client.get(f"/episodes/{replay.episode_id}/replay/", {"part": "live"})
    text = form.content.decode()
    assert "1 of 2 ended" in text and "s-running" in text and 'name="chunk"' not in text


def test_treatment_and_checkpoint_stand_in_words(replay: Replay, viewer_client: Client) -> None:
    first, other = CHUNKS[0], CHUNKS[8]
    for page in (f"/episodes/{replay.episode_id}/replay/", address(replay), tell(replay, 3)):
        text = " ".join(viewer_client.get(page).content.decode().split())
        assert f'<span class="tag" title="{first[0]}">+ {first[1]}</span>' in text
        assert f'title="{other[0]}" lang="zh-CN">+ {other[1]}</span>' in text
        assert "round 0, after training" in text
        assert "round-000/train" not in re.sub(r'value="[^"]*"', "", text)
        assert "badge s-running" in text


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        (["size"], ["size"], "the same chunks"),
        (["size"], [], "no chunk"),
        ([], [skill_id for skill_id, _title, _effect in CHUNKS], "all 10 chunks"),
        (["gone"], ["size"], 'title="gone">− gone</span>'),
    ],
)
def test_a_change_that_one_word_says_is_said_by_it(
    replay: Replay, viewer_client: Client, before: list[str], now: list[str], words: str
) -> None:
    Episode.objects.filter(pk=replay.episode_id).update(skill_ids=before)
    Replay.objects.update(skill_ids=now)
    assert words in viewer_client.get(address(replay)).content.decode()


def test_a_replay_that_fell_silent_can_be_handed_in_again(
    replay: Replay, operator_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = f"/episodes/{replay.episode_id}/replay/"
    monkeypatch.setattr("intraskill_web.episodes.replay_choices.why_not", lambda *given: "")
    assert 'name="again"' not in operator_client.get(page).content.decode()
    Replay.objects.update(created_at="2026-01-01T00:00:00Z")
    tell(replay, 3)
    assert 'name="again"' not in operator_client.get(page).content.decode()
    long_ago = time.time() - 1000
    os.utime(replay.folder / "run" / "live" / "batch.jsonl", (long_ago, long_ago))
    html = operator_client.get(page).content.decode()
    assert 'name="again"' in html and "its worker may be gone" in html


def test_what_was_asked_for_stays_in_the_form_beside_its_mistake(
    replay: Replay, operator_client: Client
) -> None:
    page = f"/episodes/{replay.episode_id}/replay/"
    (replay.folder.parents[1] / "endpoints.yaml").write_text(
        "servers: {gpu: {endpoint: {base_url: 'http://x/v1', model: m}}}"
    )
    form = {"n": "99", "chunk": [CHUNKS[3][0]], "checkpoint": "served:gpu"}
    answer = operator_client.post(page, form)
    html = answer.content.decode()
    assert answer.status_code == 400 and "n must be between 1 and 64" in html
    assert 'value="99"' in html and '<option value="served:gpu" selected>' in html
    assert re.findall(r'name="chunk" value="([^"]*)" checked', html) == [CHUNKS[3][0]]


def test_a_replay_stands_beside_its_original_from_their_first_divergence(
    replay: Replay, viewer_client: Client, operator_client: Client
) -> None:
    page = tell(replay, 3)
    publish(replay)
    original = json.loads((replay.folder / "traces").read_bytes())
    original["steps"][1] |= {"action": "click[other]", "model": {"content": "other"}}
    file = replay.episode.file
    file.parent.mkdir(parents=True)
    file.write_text("\n" * replay.episode.line + json.dumps(original) + "\n")
    single = viewer_client.get(page).content.decode()
    assert 'href="?with=original#divergence"' in single and 'id="divergence"' not in single
    html = viewer_client.get(page + "?with=original").content.decode()
    text = " ".join(html.split())
    assert Page(html).policy_faults() == []
    assert (
        "First divergence, turn 2: the same page, another choice." in text
        and f'href="{address(replay)}1/?with=original"' in text
    )
    assert '<span class="ab">A</span>as it was' in text
    assert '<span class="ab B">B</span>replay' in text
    assert "Bought and wanted" not in text and "Bought and wanted" in (
        operator_client.get(page + "?with=original").content.decode()
    )
    file.unlink()
    for query in ("?with=original", "?with=original&row=99999"):
        answer = viewer_client.get(page + query)
        assert answer.status_code == 200 and b"The trace cannot be shown." in answer.content
    assert viewer_client.get(page + "?with=original&row=x").status_code == 400


def test_the_row_of_what_was_is_about_all_that_its_numbers_count(
    replay: Replay, viewer_client: Client
) -> None:
    rows = Episode.objects.filter(
        experiment=replay.episode.experiment,
        purpose="train",
        scored=True,
        group_index__isnull=False,
    )
    one = rows.order_by("group_index").first()
    assert one is not None
    group = Episode.objects.filter(
        experiment=one.experiment, purpose="train", group_index=one.group_index
    )
    html = viewer_client.get(f"/episodes/{one.pk}/replay/").content.decode()
    (row,) = re.findall(r"<tr>\s*<th scope=\"row\">as it was.*?</tr>", html, re.DOTALL)
    assert f"{group.count()} episodes, this one among them" in row
    assert 'class="badge' not in row


def test_a_running_replay_is_among_what_is_being_played(
    replay: Replay, viewer_client: Client
) -> None:
    Stage.objects.update(state="succeeded")
    page = tell(replay, 3)
    answer = viewer_client.get("/episodes/playing/")
    html = answer.content.decode()
    assert f'href="{page}"' in html and f"replay {replay.pk}" in html
    assert answer["X-Active"] == "1"
    data = viewer_client.get("/episodes/playing/?format=json").json()
    assert data == {"playing": [{"url": page, "turns": 2, "running": True}]}
    Replay.objects.update(state="failed")
    answer = viewer_client.get("/episodes/playing/")
    assert f'href="{page}"' not in answer.content.decode() and answer["X-Active"] == "0"


def test_what_came_of_a_replay_is_the_same_everywhere_when_its_files_are_gone(
    replay: Replay, viewer_client: Client
) -> None:
    kept = {"reward": 0.25, "success": False, "turns": 3, "termination": "purchase", "sample": 0}
    lost = {"reward": None, "success": None, "turns": 0, "termination": "", "sample": 1}
    Replay.objects.update(state="succeeded", outcomes=[kept, lost])
    shutil.rmtree(replay.folder)
    said = {name: kept[name] for name in ("reward", "success", "turns")}
    form = viewer_client.get(f"/episodes/{replay.episode_id}/replay/").content.decode()
    assert "0 / 1</a>" in form and "of 2 ended" not in form
    whole = " ".join(viewer_client.get(address(replay)).content.decode().split())
    assert "<b>2 / 2</b>" in whole and "0.250" in whole and "Policy failure" in whole
    first, second = viewer_client.get(address(replay) + "?format=json").json()["episodes"]
    assert first == {"sample": 0, "running": False, "gone": True, **said}
    assert second["reward"] is None and second["gone"]
    page = f"{address(replay)}0/"
    for query in ("", "?with=original"):
        html = viewer_client.get(page + query).content.decode()
        assert "Its files are gone" in html and "Policy failure" in html and "0.250" in html
        assert "does not run" not in html
    data = viewer_client.get(page + "?format=json").json()
    assert data == {"replay": replay.pk, "sample": 0, "trace": {}, **said} | {
        "problem": "Its files are gone; what came of it is kept."
    }


def test_a_long_transcript_of_a_replay_names_its_other_turns(
    replay: Replay, viewer_client: Client
) -> None:
    page = tell(replay, 3)
    publish(replay)
    file = replay.folder / "run" / "traces.jsonl"
    line = json.loads(file.read_bytes())
    line["steps"] = (line["steps"] * 60)[:60]
    file.write_text(json.dumps(line) + "\n")
    first = viewer_client.get(page).content.decode()
    assert 'href="?turn=51#t51"' in first and "51 – 60" in first
    later = viewer_client.get(page + "?turn=51").content.decode()
    assert 'href="?turn=1#t1"' in later and "1 – 50" in later
