"""Looking on while an episode is played: its turns appear, and its state is true to the end."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client

from intraskill_web.episodes.models import Episode
from intraskill_web.experiments.models import Round, Stage
from jobs.mirror import evaluations
from tests.trainer.fakes import FakePolicy, shopper
from tests.trainer.rollout.test_driver import requests
from tests.web.factories import Made
from tests.web.html import Page
from trainer.files import append_jsonl
from trainer.rollout.driver import run_episodes
from trainer.rollout.live import LiveFile
from trainer.shop.world import load_world

FOLDER = "validate/bare"
HOSTILE = "<script>alert(1)</script>\x00\x1b[31m\u202e"


@pytest.fixture
def round_(made: Made) -> Iterator[Round]:
    """A round whose validation runs, with the live file of two whole episodes."""
    found = made.rounds[1]
    Stage.objects.filter(round=found, kind="validate").update(state="running")
    live = LiveFile(found.folder / FOLDER / "live" / "batch.jsonl")
    world = load_world("mini")
    results = run_episodes(world, FakePolicy(shopper()), requests(world, 2), live=live)
    live.path.with_name("whole").write_bytes(live.path.read_bytes())
    append_jsonl(live.path.with_name("traces"), [r.trace for r in results])
    yield found
    for path in live.path.parent.iterdir():
        path.unlink()


def lines(round_: Round) -> list[bytes]:
    """The lines of the whole live file, of the second episode only."""
    whole = (round_.folder / FOLDER / "live" / "whole").read_bytes().splitlines(keepends=True)
    second = json.loads(whole[1])[0]
    return [line for line in whole if json.loads(line)[0] == second]


def tell(round_: Round, told: list[bytes]) -> str:
    """Let the live file hold these lines; the address of their episode."""
    (round_.folder / FOLDER / "live" / "batch.jsonl").write_bytes(b"".join(told))
    return f"/episodes/playing/{round_.pk}/{FOLDER}/{json.loads(told[0])[0]}/"


def publish(round_: Round) -> None:
    """What the engine and the mirror do at the end of the batch."""
    live = round_.folder / FOLDER / "live"
    file = round_.folder / FOLDER / "traces.jsonl"
    file.write_bytes((live / "traces").read_bytes())
    (live / "batch.jsonl").unlink()
    run = round_.experiment.folder
    evaluations.follow(round_, run, round_.folder / FOLDER, purpose="bare", arm="bare")


def test_turns_appear_as_they_are_played(round_: Round, viewer_client: Client) -> None:
    told = lines(round_)
    address = tell(round_, told[:3])
    html = viewer_client.get(address).content.decode()
    assert Page(html).policy_faults() == []
    assert 'id="t2"' in html and 'id="t3"' not in html and 'data-state="running"' in html
    poll = viewer_client.get(address, {"part": "live", "from": "2"})
    tag = poll["ETag"]
    assert poll["X-Active"] == "1" and 'id="t2"' in poll.content.decode()
    again = {"headers": {"If-None-Match": tag}}
    assert viewer_client.get(address, {"part": "live", "from": "2"}, **again).status_code == 304
    tell(round_, told[:4])
    news = viewer_client.get(address, {"part": "live", "from": "2"}, **again)
    text = news.content.decode()
    assert news.status_code == 200 and 'id="t3"' in text and 'id="t1"' not in text


def test_the_text_that_answered_the_last_turn_is_there(
    round_: Round, viewer_client: Client
) -> None:
    told = lines(round_)
    data = viewer_client.get(tell(round_, told[:2]), {"format": "json"}).json()
    after = json.loads(told[1])[2]["after"]
    assert after and data["trace"]["final"] == {"observation": after}


def test_the_end_is_told_and_then_the_row_takes_over(round_: Round, viewer_client: Client) -> None:
    told = lines(round_)
    address = tell(round_, told)
    text = viewer_client.get(address).content.decode()
    assert 'data-state="ended"' in text and "being recorded" in text
    publish(round_)
    row = Episode.objects.get(round=round_, episode_id=json.loads(told[0])[0])
    poll = viewer_client.get(address, {"part": "live", "from": "2"})
    news = poll.content.decode()
    assert poll["X-Active"] == "0" and 'data-state="recorded"' in news
    assert f'href="/episodes/{row.pk}/"' in news and f'id="t{row.turns}"' in news
    answer = viewer_client.get(address)
    assert (answer.status_code, answer["Location"]) == (302, f"/episodes/{row.pk}/")


def test_nothing_private_is_told_while_it_is_played(round_: Round, viewer_client: Client) -> None:
    told = lines(round_)
    end = json.loads(told[-1])
    detail = {"price_upper": 7, "r_att": 1.0}
    end[2]["final"] |= {"goal": {"asin": "hunter2"}, "reward_detail": detail}
    address = tell(round_, [*told[:-1], json.dumps(end).encode() + b"\n"])
    data = viewer_client.get(address, {"format": "json"}).json()
    assert data["trace"]["final"]["reward_detail"] == {"r_att": 1.0}
    assert "hunter2" not in json.dumps(data)


def test_an_episode_whose_engine_died_is_not_called_running(
    round_: Round, viewer_client: Client
) -> None:
    address = tell(round_, lines(round_)[:3])
    Stage.objects.filter(round=round_, kind="validate").update(state="stopped")
    html = viewer_client.get(address).content.decode()
    assert 'data-state="stopped"' in html and "is played again" in html
    assert "Nothing is being played" in viewer_client.get("/episodes/playing/").content.decode()


def test_a_failed_try_that_is_played_again_is_running(round_: Round, viewer_client: Client) -> None:
    told = lines(round_)
    tell(round_, told)
    publish(round_)
    address = tell(round_, told[:2])
    assert 'data-state="running"' in viewer_client.get(address).content.decode()


def test_the_list_names_each_with_its_last_action(round_: Round, viewer_client: Client) -> None:
    told = lines(round_)
    address = tell(round_, told[:3])
    text = viewer_client.get("/episodes/playing/").content.decode()
    action = json.loads(told[2])[2]["step"]["action"]
    assert f'href="{address}"' in text and action in text
    data = viewer_client.get("/episodes/playing/?format=json").json()
    assert data == {"playing": [{"url": address, "turns": 2, "running": True}]}


@pytest.mark.parametrize("folder", ["../../etc", "superseded", "train/live"])
def test_other_folders_are_none_of_this_page(
    round_: Round, viewer_client: Client, folder: str
) -> None:
    assert viewer_client.get(f"/episodes/playing/{round_.pk}/{folder}/x/").status_code == 404


def test_a_hostile_or_torn_file_is_shown_inert(round_: Round, viewer_client: Client) -> None:
    head, *turns = [json.loads(line) for line in lines(round_)[:2]]
    head[2]["reset"]["task_instruction"] = HOSTILE
    turns[0][2]["step"]["model"]["content"] = HOSTILE
    turns[0][2]["step"]["action"] = HOSTILE
    made = [json.dumps(line).encode() + b"\n" for line in (head, *turns)]
    address = tell(round_, [*made, b"[1]\n", b'[{},"begin",{}]\n', b"\xff\n", b'["torn'])
    for path in (address, address + "?part=live&from=1", "/episodes/playing/"):
        html = viewer_client.get(path).content.decode()
        assert "alert(1)" in html
        assert Page(html).policy_faults() == [] and "<script>alert" not in html
    assert viewer_client.get(address + "?format=json").status_code == 200
    assert viewer_client.get(address + "?part=live&from=x").status_code == 400


def test_a_missing_file_waits_and_its_folder_may_be_missing_too(
    made: Made, viewer_client: Client
) -> None:
    round_ = made.rounds[1]
    Stage.objects.filter(round=round_, kind="gate").update(state="running")
    address = f"/episodes/playing/{round_.pk}/gate/task-000001__sample-000/"
    assert 'data-state="waiting"' in viewer_client.get(address).content.decode()
    assert not Path(round_.folder / "gate" / "live").exists()


@pytest.mark.parametrize(
    "line",
    [
        ["e", "begin", {"conversation": [], "steps": {}}],
        ["e", "begin", {"conversation": {}, "steps": [1]}],
        ["e", "begin", [["conversation", []]]],
        [["e"], "begin", {"conversation": []}],
        ["e", "end", [1]],
        ["e"],
    ],
)
def test_lines_that_no_engine_wrote_cost_no_other_episode(
    round_: Round, viewer_client: Client, line: object
) -> None:
    told = lines(round_)
    turn = ["e", "turn", {"step": {}, "after": ""}]
    strange = [json.dumps(each).encode() + b"\n" for each in (line, turn)]
    tell(round_, [*told[:2], *strange])
    assert len(viewer_client.get("/episodes/playing/?format=json").json()["playing"]) == 1
    assert viewer_client.get(f"/episodes/playing/{round_.pk}/{FOLDER}/e/").status_code == 200


def test_a_live_file_that_is_none_is_passed_over(
    round_: Round, viewer_client: Client, tmp_path: Path
) -> None:
    told = lines(round_)
    address = tell(round_, told[:2])
    folder = round_.folder / FOLDER / "live"
    outside = tmp_path / "outside"
    outside.write_bytes(b"".join(told).replace(b"sample", b"secret"))
    (folder / "link.jsonl").symlink_to(outside)
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "x.jsonl").mkdir()
    try:
        playing = viewer_client.get("/episodes/playing/?format=json").json()["playing"]
        assert [line["url"] for line in playing] == [address]
        assert viewer_client.get(address).status_code == 200
    finally:
        (folder / "x.jsonl").rmdir()


@pytest.mark.parametrize("depth", [300, 900])
def test_an_episode_that_is_nested_too_deeply_is_not_followed(
    round_: Round, viewer_client: Client, depth: int
) -> None:
    told = lines(round_)
    begin = json.loads(told[0])
    deep = b'["' + begin[0].encode() + b'", "end", {"x": ' + b"[" * depth + b"]" * depth + b"}]\n"
    address = tell(round_, [*told[:2], deep])
    assert viewer_client.get(address).status_code == 200
    assert viewer_client.get("/episodes/playing/?format=json").json() == {"playing": []}


def test_a_page_opened_before_its_episode_began_gets_title_and_prompt_when_it_does(
    round_: Round, viewer_client: Client
) -> None:
    told = lines(round_)
    address = tell(round_, told[:1])
    (round_.folder / FOLDER / "live" / "batch.jsonl").write_bytes(b"")
    assert "not there yet" in viewer_client.get(address).content.decode()
    tell(round_, told[:2])
    news = viewer_client.get(address, {"part": "live", "from": "0"}).content.decode()
    task = json.loads(told[0])[2]["reset"]["task_instruction"]
    assert f"{task}</h1>" in news and "3 messages" in news
    for part in ("title", "prompt", "about"):
        assert f'data-part="{part}"' in news
    later = viewer_client.get(address, {"part": "live", "from": "1"}).content.decode()
    assert 'data-part="prompt"' not in later
