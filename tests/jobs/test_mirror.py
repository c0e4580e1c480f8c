"""Files become rows: once, incrementally, and again after a crash cut them back."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from intraskill_web.episodes.models import Episode
from intraskill_web.experiments.flow import new_round
from intraskill_web.experiments.models import CheckpointScore, Experiment, Round
from intraskill_web.monitoring.models import MetricPoint, UpdatePoint
from jobs import mirror
from jobs.layout import RoundPlan
from jobs.mirror import evaluations, training
from jobs.plans import plan_of
from tests.jobs.traces import group_line, trace, training_trace, write_step
from trainer.files import append_jsonl, write_json, write_jsonl


@pytest.fixture
def round_(experiment: Experiment) -> Round:
    return new_round(experiment, 0)


@pytest.fixture
def plan(round_: Round) -> RoundPlan:
    return plan_of(round_)


def follow(round_: Round, plan: RoundPlan) -> int:
    folder = plan.folder / "validate" / "bare"
    return evaluations.follow(round_, plan.run, folder, purpose="bare", arm="bare")


def traces_file(plan: RoundPlan) -> Path:
    return plan.folder / "validate" / "bare" / "traces.jsonl"


def finish_step(plan: RoundPlan, step: int, success: float = 0.5) -> None:
    """What the trainer leaves of a step: two groups of two, and one retry."""
    folder = plan.folder / "train"
    first = 2 * step
    write_step(
        folder,
        step,
        [
            *(training_trace(step, first, sample) for sample in (0, 1)),
            *(training_trace(step, first + 1, sample) for sample in (2, 3)),
            training_trace(step, first + 1, 4, retry=True),
        ],
    )
    groups = [group_line(step, first, (0, 1), admitted=True)]
    groups.append(group_line(step, first + 1, (2, 3), admitted=False))
    append_jsonl(folder / "groups.jsonl", groups)
    append_jsonl(
        folder / "updates.jsonl", [{"update": step, "step": step, "metrics": {"train/loss": 0.1}}]
    )
    line: dict[str, Any] = {"step": step, "metrics": {"success": success}, "seconds": {"step": 2.5}}
    append_jsonl(folder / "metrics.jsonl", [line])


def test_an_evaluation_grows_into_rows(round_: Round, plan: RoundPlan) -> None:
    append_jsonl(traces_file(plan), [trace(1), trace(2, success=False)])
    assert follow(round_, plan) == 2
    append_jsonl(traces_file(plan), [trace(3)])
    assert follow(round_, plan) == 1
    assert follow(round_, plan) == 0
    rows = Episode.objects.order_by("line")
    assert [(row.task_id, row.success, row.reward) for row in rows] == [
        (1, True, 1.0),
        (2, False, 0.25),
        (3, True, 1.0),
    ]
    row = rows[0]
    assert (row.purpose, row.arm, row.treatment_mode) == ("bare", "bare", "bare")
    assert (row.turns, row.tokens, row.protocol_errors, row.invalid_actions) == (2, 17, 1, 1)
    assert (row.r_type, row.r_success, row.termination) == (1.0, 1.0, "purchase")
    assert (row.instruction, row.path) == ("buy thing 1", "round-000/validate/bare/traces.jsonl")


def test_a_torn_line_waits_until_it_is_whole(round_: Round, plan: RoundPlan) -> None:
    append_jsonl(traces_file(plan), [trace(1), trace(2)])
    whole = traces_file(plan).read_bytes()
    traces_file(plan).write_bytes(whole[:-20])
    assert follow(round_, plan) == 1
    traces_file(plan).write_bytes(whole)
    assert follow(round_, plan) == 1
    assert Episode.objects.count() == 2


def test_a_file_that_was_cut_back_is_taken_anew(round_: Round, plan: RoundPlan) -> None:
    append_jsonl(traces_file(plan), [trace(1), trace(2), trace(3)])
    assert follow(round_, plan) == 3
    os.truncate(traces_file(plan), 100)
    append_jsonl(traces_file(plan), [trace(1), trace(7, duration_ms=99999.25), trace(8), trace(9)])
    assert follow(round_, plan) == 4
    assert list(Episode.objects.order_by("line").values_list("task_id", "line")) == [
        (1, 0),
        (7, 1),
        (8, 2),
        (9, 3),
    ]


def test_an_unscored_episode_has_no_reward_and_keeps_its_error(
    round_: Round, plan: RoundPlan
) -> None:
    failed = trace(1, status="failed", final=None, error={"type": "Timeout", "message": "no"})
    append_jsonl(traces_file(plan), [failed])
    follow(round_, plan)
    row = Episode.objects.get()
    assert (row.status, row.scored, row.reward, row.success) == ("failed", False, None, None)
    assert row.error == "Timeout: no"


def test_text_that_no_database_takes_is_mended(round_: Round, plan: RoundPlan) -> None:
    hostile = trace(1, reset={"task_instruction": "a\0b\ud800c"}, error=None)
    append = traces_file(plan)
    append.parent.mkdir(parents=True)
    append.write_text(json.dumps(hostile) + "\n")
    assert follow(round_, plan) == 1
    assert Episode.objects.get().instruction == "a\ufffdb?c"


def test_training_steps_become_points_and_episodes(round_: Round, plan: RoundPlan) -> None:
    finish_step(plan, 1)
    training.follow(round_, plan)
    assert set(MetricPoint.objects.values_list("name", "step", "value")) == {
        ("success", 1, 0.5),
        ("perf/step_time", 1, 2.5),
    }
    assert UpdatePoint.objects.get().name == "train/loss"
    rows = list(Episode.objects.order_by("line"))
    assert [row.purpose for row in rows] == ["train"] * 4 + ["retry"]
    assert [row.advantage for row in rows] == [0.5, -0.5, None, None, None]
    assert [row.admitted for row in rows] == [True, True, False, False, False]
    assert {row.triage for row in rows} == {"not_frontier"}
    assert (rows[0].treatment_mode, rows[0].skill_ids) == ("assisted", ["a"])
    assert (rows[0].step, rows[0].group_index, rows[0].task_id) == (1, 2, 102)


def test_updates_may_come_after_their_step_and_be_done_again(
    round_: Round, plan: RoundPlan
) -> None:
    def tell(*losses: float) -> list[tuple[int, float]]:
        lines = [
            {"update": number, "step": number, "metrics": {"train/loss": loss}}
            for number, loss in enumerate(losses, 1)
        ]
        write_jsonl(plan.folder / "train" / "updates.jsonl", lines)
        training.follow(round_, plan)
        return list(UpdatePoint.objects.order_by("update").values_list("update", "value"))

    finish_step(plan, 1)
    assert tell(0.1) == [(1, 0.1)]
    assert tell(0.1, 0.2) == [(1, 0.1), (2, 0.2)]
    tell(0.1, 0.3)
    assert tell(0.1, 0.3, 0.4) == [(1, 0.1), (2, 0.3), (3, 0.4)]


def test_times_of_a_step_may_come_after_it(round_: Round, plan: RoundPlan) -> None:
    finish_step(plan, 1)
    training.follow(round_, plan)
    late = {"step": 1, "metrics": {"perf/actor_train_time": 29.0}}
    append_jsonl(plan.folder / "train" / "perf.jsonl", [late])
    training.follow(round_, plan)
    assert MetricPoint.objects.get(name="perf/actor_train_time").value == 29.0


def test_a_step_counts_only_when_its_metrics_line_stands(round_: Round, plan: RoundPlan) -> None:
    finish_step(plan, 1)
    (plan.folder / "train" / "metrics.jsonl").unlink()
    training.follow(round_, plan)
    assert Episode.objects.count() == 0


def test_a_step_that_is_done_again_writes_the_same_rows_over(
    round_: Round, plan: RoundPlan
) -> None:
    finish_step(plan, 1)
    finish_step(plan, 2)
    training.follow(round_, plan)
    before = sorted(Episode.objects.values_list("pk", "path", "line"))
    folder = plan.folder / "train"
    for name in ("groups", "updates", "metrics"):
        path = folder / f"{name}.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[: len(lines) // 2]))
    finish_step(plan, 2, success=0.75)
    training.follow(round_, plan)
    values = MetricPoint.objects.filter(name="success").order_by("step")
    assert [point.value for point in values] == [0.5, 0.75]
    assert sorted(Episode.objects.values_list("pk", "path", "line")) == before
    assert len(before) == 10 and UpdatePoint.objects.count() == 2


def test_a_step_whose_traces_were_just_undone_is_left_for_later(
    round_: Round, plan: RoundPlan
) -> None:
    finish_step(plan, 1)
    traces = plan.folder / "train" / "steps" / "step-000001.jsonl.gz"
    traces.rename(traces.with_suffix(".away"))
    training.follow(round_, plan)
    assert MetricPoint.objects.count() == 0
    traces.with_suffix(".away").rename(traces)
    training.follow(round_, plan)
    assert Episode.objects.count() == 5


def test_the_score_of_a_checkpoint_comes_from_the_summary(round_: Round, plan: RoundPlan) -> None:
    folder = plan.folder / "validate" / "bare"
    write_json(
        folder / "summary.json",
        {
            "primary": {"success_rate": 0.5, "reward_mean": 0.625},
            "counts": {"scored": 40},
        },
    )
    write_json(folder / "manifest.json", {"plan": {"task_split": {"name": "val"}}})
    for _ in range(2):
        evaluations.record_score(round_, plan.run, folder, step=20, arm="bare")
    score = CheckpointScore.objects.get()
    assert (score.step, score.split, score.arm, score.n) == (20, "val", "bare", 40)
    assert (score.success, score.reward, score.path) == (0.5, 0.625, "round-000/validate/bare")


def test_every_evaluation_folder_of_a_round_is_mirrored(round_: Round, plan: RoundPlan) -> None:
    for name in mirror.EVALUATIONS:
        append_jsonl(plan.folder / name / "traces.jsonl", [trace(1)])
    for stage in round_.stages.all():
        mirror.follow(stage, plan)
    found = set(Episode.objects.values_list("purpose", "arm"))
    assert found == set(mirror.EVALUATIONS.values())
