"""Looking on while episodes are played: the side file tells each turn, and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.fakes import FakePolicy, shopper
from tests.trainer.grpo.test_training_round import training_run
from tests.trainer.rollout.test_driver import requests
from tests.trainer.rollout.test_evaluate import evaluation, traces
from trainer.rollout.driver import run_episodes
from trainer.rollout.live import LiveFile, read_live, step_file
from trainer.rollout.policy import Conversation, ModelTurn
from trainer.rollout.private import public
from trainer.rollout.traces import without_times
from trainer.shop.world import World

Seen = list[list[dict[str, Any]]]


def watched(look: Callable[[], list[dict[str, Any]]], seen: Seen) -> FakePolicy:
    """A shopper that looks at the live file before each turn of the batch's first episode."""
    answer, first = shopper(), []

    def act(conversation: Conversation, turn: int) -> ModelTurn:
        first.append(conversation.noise_key)
        if conversation.noise_key == first[0]:
            seen.append(look())
        return answer(conversation, turn)

    return FakePolicy(act)


def test_each_turn_is_told_before_the_next_one_is_sampled(mini: World, tmp_path: Path) -> None:
    live = LiveFile(tmp_path / "live" / "batch.jsonl")
    seen: Seen = []
    policy = watched(lambda: list(read_live(live.path)), seen)
    asked = requests(mini, 3)
    results = run_episodes(mini, policy, asked, live=live)
    assert len(seen) > 1
    for turn, told in enumerate(seen):
        assert [trace["episode_id"] for trace in told] == [r.episode_id for r in asked]
        for trace, result in zip(told, results, strict=True):
            steps = trace["steps"]
            assert len(steps) == min(turn, len(result.trace["steps"]))
            assert steps == json.loads(json.dumps(result.trace["steps"][: len(steps)]))
            if trace["status"] == "running":
                following = result.trace["steps"][len(steps)]["observation"]
                assert trace["final"] == {"observation": following}


def test_the_end_is_told_without_the_private_goal(mini: World, tmp_path: Path) -> None:
    live = LiveFile(tmp_path / "batch.jsonl")
    _first, second = run_episodes(mini, FakePolicy(shopper()), requests(mini, 2), live=live)
    [told] = read_live(live.path, second.trace["episode_id"])
    whole = json.loads(json.dumps(without_times(second.trace)))
    assert {"goal", "reward_detail"} <= whole["final"].keys()
    whole = public(whole)
    assert not any(word in live.path.read_text() for word in ('"goal"', "target_asin_match"))
    del whole["tokens"]
    whole["provenance"] = {key: whole["provenance"][key] for key in ("model", "skills")}
    assert without_times(told) == whole
    live.close()
    assert list(read_live(live.path)) == []


def test_only_so_many_are_told_of_at_once(
    mini: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.rollout.live.AT_ONCE", 2)
    live = LiveFile(tmp_path / "batch.jsonl")
    asked = requests(mini, 6)
    run_episodes(mini, FakePolicy(shopper()), asked, batch_size=3, live=live)
    told = [trace["episode_id"] for trace in read_live(live.path)]
    assert told == [asked[place].episode_id for place in (0, 1, 3, 4)]


def test_a_torn_last_line_waits(mini: World, tmp_path: Path) -> None:
    live = LiveFile(tmp_path / "batch.jsonl")
    run_episodes(mini, FakePolicy(shopper()), requests(mini, 1), live=live)
    live.path.write_bytes(live.path.read_bytes()[:-9])
    [told] = read_live(live.path)
    assert told["status"] == "running" and told["steps"]


def test_an_evaluation_is_told_of_batch_by_batch_and_leaves_nothing(
    mini: World, tmp_path: Path
) -> None:
    seen: Seen = []
    path = tmp_path / "watched" / "live" / "batch.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("of a run that was killed")
    policy = watched(lambda: list(read_live(path)), seen)
    evaluation(mini, policy=policy).run(tmp_path / "watched")
    evaluation(mini).run(tmp_path / "plain")
    assert len(seen[1]) == 4 and seen[1][0]["steps"]
    assert not path.exists()
    assert traces(tmp_path / "watched") == traces(tmp_path / "plain")


def test_a_step_of_training_is_told_of_until_it_is_published(mini: World, tmp_path: Path) -> None:
    run = training_run(mini, tmp_path / "round")
    seen: list[list[str]] = []
    update = run.engine.update

    def look(episodes: Any) -> Any:
        told = list(read_live(step_file(run.config.output_dir, len(seen) // 2 + 1)))
        seen.append([trace["status"] for trace in told])
        return update(episodes)

    run.engine.update = look  # type: ignore[method-assign]
    run.run()
    assert [len(told) >= 24 and set(told) == {"completed"} for told in seen] == [True] * 4
    assert not list((run.config.output_dir / "live").iterdir())


def test_a_disk_that_refuses_it_costs_only_the_view(
    mini: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "live").write_text("in the way")
    live = LiveFile(tmp_path / "live" / "batch.jsonl")
    told = run_episodes(mini, FakePolicy(shopper()), requests(mini, 2), live=live)
    plain = run_episodes(mini, FakePolicy(shopper()), requests(mini, 2))
    assert [without_times(r.trace) for r in told] == [without_times(r.trace) for r in plain]
    assert caplog.text.count("nobody can look on any more") == 1
