"""Evaluations: plans, identities, resuming, technical failures, summaries."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.fakes import FakePolicy, call, shopper, words
from tests.trainer.rollout.standard_world import WANTED, standard_world
from trainer.errors import InputError, StopRequested
from trainer.files import read_json, read_jsonl
from trainer.rollout import evaluate
from trainer.rollout.evaluate import Evaluation, Execution, build_plan, choose_tasks
from trainer.rollout.policy import Conversation, ModelTurn
from trainer.rollout.providers import BankSkills, NoSkills, SkillAssignment
from trainer.rollout.summary import summarise, summarise_traces
from trainer.rollout.traces import without_times
from trainer.rollout.types import EpisodeJob
from trainer.shop.world import World
from trainer.skills.bank import SkillBank
from trainer.skills.types import Chunk

BANK = SkillBank((Chunk("calm", "think slowly"),), "b" * 64)


def evaluation(
    world: World,
    *,
    tasks: int = 10,
    seed: int = 5,
    skills: SkillAssignment | None = None,
    policy: FakePolicy | None = None,
    **execution: Any,
) -> Evaluation:
    skills = skills or NoSkills()
    policy = policy or FakePolicy(shopper())
    plan = build_plan(
        world, policy, skills, split="val", task_ids=world.split("val")[:tasks], seed=seed
    )
    return Evaluation(world, policy, skills, plan, Execution(**{"batch_size": 4, **execution}))


def traces(folder: Path) -> list[Any]:
    return [without_times(trace) for trace in read_jsonl(folder / "traces.jsonl")]


@pytest.mark.parametrize(
    ("seed", "task", "sample", "expected"),
    [(20260830, 19, 0, 2694671387), (20260830, 19, 1, 831922249), (42, 2, 0, 601474708)],
)
def test_episode_seeds_are_the_published_ones(
    seed: int, task: int, sample: int, expected: int
) -> None:
    assert EpisodeJob.of(seed, task, sample, "val").seed == expected


def test_jobs_come_task_by_task_and_then_sample_by_sample(mini: World) -> None:
    plan = build_plan(
        mini, FakePolicy(shopper()), NoSkills(), split="val", task_ids=[7, 3], seed=1, repeats=2
    )
    assert [(job.task_id, job.sample_id) for job in plan.jobs] == [(7, 0), (7, 1), (3, 0), (3, 1)]
    assert len({job.seed for job in plan.jobs}) == 4
    assert plan.jobs[0].episode_id == "task-000007__sample-000"


def test_a_run_writes_manifest_traces_and_summary(mini: World, tmp_path: Path) -> None:
    summary = evaluation(mini).run(tmp_path)
    assert summary["counts"] == {
        "requested": 10, "trace_files": 10, "completed": 10, "failed": 0, "scored": 10,
        "coverage": 1.0,
    }  # fmt: skip
    manifest = read_json(tmp_path / "manifest.json")
    assert manifest["plan"]["skills"] == {"provider": "none"}
    assert manifest["plan_fingerprint"] == evaluation(mini).plan.fingerprint
    assert manifest["execution"]["batch_size"] == 4
    assert read_json(tmp_path / "summary.json") == summary
    assert without_times(summarise(tmp_path)) == without_times(summary)
    assert read_json(tmp_path / "progress.json")["done"] == 10


def test_the_log_says_of_which_evaluation_it_counts_the_episodes(
    mini: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="trainer.progress")
    for arm, skills in (("bare", NoSkills()), ("full", BankSkills(BANK))):
        evaluation(mini, skills=skills).run(tmp_path / "validate" / arm)
    ends = [text for text in caplog.messages if text.startswith("episode 10 of 10")]
    assert ends == [
        "episode 10 of 10; bare on val (validate/bare)",
        "episode 10 of 10; full skill on val (validate/full)",
    ]
    assert read_json(tmp_path / "validate" / "full" / "progress.json")["message"] == (
        "full skill on val (validate/full)"
    )


def test_facts_of_execution_are_no_part_of_the_plans_identity(mini: World) -> None:
    one = evaluation(mini, batch_size=4, facts={"threads": 1})
    two = evaluation(mini, batch_size=9, facts={"threads": 2}, record_tokens=True)
    assert one.plan.fingerprint == two.plan.fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"tasks": 9},
        {"seed": 6},
        {"skills": BankSkills(BANK)},
        {"policy": FakePolicy(shopper(), name="another")},
    ],
)
def test_whatever_changes_results_changes_the_fingerprint(
    mini: World, change: dict[str, Any]
) -> None:
    assert evaluation(mini, **change).plan.fingerprint != evaluation(mini).plan.fingerprint


def test_a_folder_is_never_continued_under_another_plan(mini: World, tmp_path: Path) -> None:
    evaluation(mini).run(tmp_path)
    with pytest.raises(InputError, match=r"another plan .*jobs"):
        evaluation(mini, seed=6).run(tmp_path)
    with pytest.raises(InputError, match="batch_size"):
        evaluation(mini, batch_size=5).run(tmp_path)


def test_arms_with_the_same_jobs_share_their_random_numbers(mini: World, tmp_path: Path) -> None:
    bare, full = FakePolicy(shopper()), FakePolicy(shopper())
    evaluation(mini, policy=bare).run(tmp_path / "bare")
    evaluation(mini, policy=full, skills=BankSkills(BANK)).run(tmp_path / "full")

    def keys(policy: FakePolicy) -> list[str]:
        return [c.noise_key for batch in policy.batches for c in batch.conversations]

    assert keys(bare) == keys(full)
    assert len(set(keys(bare))) == 10


def test_a_finished_run_is_not_played_again(mini: World, tmp_path: Path) -> None:
    evaluation(mini).run(tmp_path)
    before = (tmp_path / "traces.jsonl").read_bytes()
    policy = FakePolicy(shopper())
    evaluation(mini, policy=policy).run(tmp_path)
    assert policy.batches == []
    assert (tmp_path / "traces.jsonl").read_bytes() == before


@pytest.mark.parametrize("lines", [0, 1, 3, 4, 7, 8, 10])
@pytest.mark.parametrize("torn", [False, True])
def test_a_killed_run_ends_like_one_that_was_not(
    mini: World, tmp_path: Path, lines: int, torn: bool
) -> None:
    evaluation(mini).run(tmp_path / "whole")
    folder = tmp_path / "killed"
    evaluation(mini).run(folder)
    written = (folder / "traces.jsonl").read_bytes().splitlines(keepends=True)
    rest = written[lines][: len(written[lines]) // 2] if torn and lines < 10 else b""
    (folder / "traces.jsonl").write_bytes(b"".join(written[:lines]) + rest)
    (folder / "summary.json").unlink()
    policy = FakePolicy(shopper())
    summary = evaluation(mini, policy=policy).run(folder)
    assert traces(folder) == traces(tmp_path / "whole")
    assert without_times(summary) == without_times(read_json(tmp_path / "whole" / "summary.json"))
    played = sum(len(batch.conversations) for batch in policy.batches)
    assert played == 10 - (10 if lines == 10 else lines // 4 * 4), "whole batches are kept"


def test_a_damaged_line_is_played_again_with_all_that_follows(mini: World, tmp_path: Path) -> None:
    evaluation(mini).run(tmp_path)
    expected = traces(tmp_path)
    written = (tmp_path / "traces.jsonl").read_bytes().splitlines(keepends=True)
    written[5] = b'{"episode_id": \xff\n'
    (tmp_path / "traces.jsonl").write_bytes(b"".join(written))
    evaluation(mini).run(tmp_path)
    assert traces(tmp_path) == expected


def flaky(failures: int) -> tuple[FakePolicy, Callable[[], int]]:
    """A policy whose engine aborts the third task's first turns that many times."""
    left = failures
    seen: list[str] = []

    def answer(conversation: Conversation, turn: int) -> ModelTurn:
        nonlocal left
        if not seen and turn == 0:
            seen.append(conversation.noise_key)
        if conversation.noise_key == seen[0] and left:
            left -= 1
            return ModelTurn("", "abort")
        return shopper()(conversation, turn)

    return FakePolicy(answer), lambda: left


def test_technical_failures_are_played_again_after_the_others(mini: World, tmp_path: Path) -> None:
    policy, left = flaky(2)
    summary = evaluation(mini, policy=policy, attempts=3).run(tmp_path)
    assert left() == 0
    assert summary["counts"]["completed"] == 10
    assert summary["counts"]["failed"] == 0
    statuses = [trace["status"] for trace in read_jsonl(tmp_path / "traces.jsonl")]
    assert statuses == ["failed"] + ["completed"] * 9 + ["failed", "completed"]
    resumed = FakePolicy(shopper())
    evaluation(mini, policy=resumed, attempts=3).run(tmp_path)
    assert resumed.batches == []


def test_failures_that_stay_leave_the_run_incomplete(mini: World, tmp_path: Path) -> None:
    policy, _ = flaky(9)
    summary = evaluation(mini, policy=policy, attempts=2).run(tmp_path)
    assert summary["counts"]["completed"] == 9
    assert summary["counts"]["coverage"] == 0.9
    assert summary["errors"] == {"TechnicalFailure": 1}


def test_a_run_that_failed_in_all_attempts_is_tried_as_often_again(
    mini: World, tmp_path: Path
) -> None:
    policy, left = flaky(3)
    assert evaluation(mini, policy=policy, attempts=2).run(tmp_path)["counts"]["failed"] == 1
    assert left() == 1
    summary = evaluation(mini, policy=policy, attempts=2).run(tmp_path)
    assert (left(), summary["counts"]["completed"]) == (0, 10)
    again = FakePolicy(shopper())
    assert evaluation(mini, policy=again, attempts=2).run(tmp_path)["counts"] == summary["counts"]
    assert again.batches == []


def test_a_stop_request_ends_at_a_batch_and_the_run_goes_on_later(
    mini: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trainer import progress

    class Asked(progress.Progress):
        def update(self, done: int, message: str = "") -> None:
            monkeypatch.setattr(progress, "_stop", done >= 8)
            super().update(done, message)

    with monkeypatch.context() as patch:
        patch.setattr(evaluate, "Progress", Asked)
        with pytest.raises(StopRequested):
            evaluation(mini).run(tmp_path)
    monkeypatch.setattr(progress, "_stop", False)
    assert len(traces(tmp_path)) == 8
    assert evaluation(mini).run(tmp_path)["counts"]["completed"] == 10


def test_tasks_are_all_or_the_first_or_a_drawn_subset() -> None:
    tasks = tuple(range(100))
    assert choose_tasks(tasks, limit=None, sample_size=None, seed=1) == tasks
    assert choose_tasks(tasks, limit=3, sample_size=None, seed=1) == (0, 1, 2)
    drawn = choose_tasks(tasks, limit=None, sample_size=5, seed=1)
    assert drawn == (17, 72, 97, 8, 32)  # random.Random(1).sample
    with pytest.raises(InputError, match="only 100 tasks"):
        choose_tasks(tasks, limit=None, sample_size=101, seed=1)


def test_the_summary_counts_protocol_turns_as_turns_and_not_as_actions(tmp_path: Path) -> None:
    turns = {
        1: [
            call("search", {"query": "迷你冰箱"}),
            call("click", {"value": WANTED}),
            call("click", {"value": "颜色=白色"}),
            call("click", {"value": "buy now"}),
        ],
        2: [call("buy", {}), call("search", {"query": "a"}), call("click", {"value": "zzz"})],
    }

    def answer(conversation: Conversation, turn: int) -> ModelTurn:
        listed = turns[int(conversation.noise_key.split(":")[1])]
        return listed[min(turn, len(listed) - 1)]

    world = standard_world()
    plan = build_plan(
        world, FakePolicy(answer), NoSkills(), split="val", task_ids=[1, 2], seed=5, max_turns=4
    )
    run = Evaluation(world, FakePolicy(answer), NoSkills(), plan)
    summary = run.run(tmp_path)
    assert summary["primary"] == {
        "reward_mean": 0.5, "reward_sem": 0.5, "success_rate": 0.5
    }  # fmt: skip
    behaviour = summary["behavior"]
    assert behaviour["model_steps"] == 8
    assert behaviour["protocol_errors"] == 1
    assert behaviour["protocol_error_rate"] == 1 / 8
    assert (behaviour["invalid_actions"], behaviour["total_actions"]) == (2, 7)
    assert behaviour["termination_reasons"] == {"action_limit": 1, "purchase": 1}


def test_an_empty_summary_has_nulls_and_no_zeros() -> None:
    summary = summarise_traces([], requested=3)
    assert summary["primary"] == {"reward_mean": None, "reward_sem": None, "success_rate": None}
    assert summary["counts"]["coverage"] == 0.0
    assert summary["behavior"]["protocol_error_rate"] is None


def test_the_summary_counts_the_plans_episodes_only(mini: World, tmp_path: Path) -> None:
    evaluation(mini).run(tmp_path)
    stranger = json.loads((tmp_path / "traces.jsonl").read_text().splitlines()[0])
    stranger["episode_id"] = "task-999999__sample-000"
    with (tmp_path / "traces.jsonl").open("a") as handle:
        handle.write(json.dumps(stranger) + "\n")
    assert summarise(tmp_path)["counts"]["completed"] == 10


def test_usage_is_summed_by_kind(mini: World, tmp_path: Path) -> None:
    def answer(conversation: Conversation, turn: int) -> ModelTurn:
        usage = {"prompt_tokens": 7, "total_tokens": 10, "reasoning_tokens": 3}
        return ModelTurn("buy", "stop", usage=usage, token_ids=(1, 2), log_probs=(-1.0, -1.0))

    policy = FakePolicy(answer)
    run = evaluation(mini, tasks=2, policy=policy)
    tokens = run.run(tmp_path)["cost"]["tokens"]
    assert tokens == {
        "prompt_tokens": 154, "completion_tokens": 44, "total_tokens": 220, "reasoning_tokens": 66
    }  # fmt: skip


def test_words_are_played_by_every_arm_alike(mini: World, tmp_path: Path) -> None:
    policy = FakePolicy(lambda conversation, turn: words("buy"))
    assert evaluation(mini, policy=policy).run(tmp_path)["primary"]["success_rate"] == 0.0
    assert os.path.getsize(tmp_path / "traces.jsonl") > 0  # noqa: PTH202
