"""A whole step: slime's loop, the hooks, the metrics slime logs, the files of the round."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.contracts import rollout_manager
from tests.contracts.shopping_scripts import by_session, losing, tasks, winning
from tests.contracts.test_filter import run_loop
from trainer.engines.slime.hooks import log_rollout, record_groups
from trainer.engines.slime.runtime import runtime
from trainer.engines.slime.samples import leaves
from trainer.files import read_jsonl
from trainer.skills.curriculum import load_curriculum


def half_and_half(group, sample, retry):
    """Even groups are mixed, odd ones all wrong; their retries succeed."""
    task = tasks()[group % len(tasks())]
    won = retry or (group % 2 == 0 and sample % 2 == 0)
    return winning(task) if won else losing(task)


@pytest.fixture
def finished(slime):
    """Three finished groups of two, the first two handed to the trainer."""
    slime.play(by_session(half_and_half))
    args = slime.args()
    groups = [slime.generate(slime.group(index), args) for index in range(3)]
    return slime, args, groups


def close_step(args, groups, trained, *, step=5, extra=None):
    record_groups(args, groups, None)
    metrics = {} if extra is None else dict(extra)
    samples = leaves([groups[index] for index in trained])
    assert log_rollout(step, args, samples, metrics, 12.5) is False
    runtime().publisher.wait()
    return metrics


def test_the_published_metrics_have_the_published_names_and_values(finished):
    slime, args, groups = finished
    metrics = close_step(args, groups, trained=[0, 1], extra={"rollout/other": 1})
    value = {
        name.removeprefix("rollout/shopsim/"): metric
        for name, metric in metrics.items()
        if name.startswith("rollout/shopsim/")
    }
    assert metrics["rollout/other"] == 1
    assert value["trajectory_count"] == 6
    assert value["group_count"] == 3
    assert value["train_trajectory_count"] == 4
    assert value["train_group_count"] == 2
    assert value["scored_rate"] == 1.0
    assert value["success_rate"] == pytest.approx(2 / 6, abs=1e-12)
    assert value["all_wrong_group_rate"] == pytest.approx(1 / 3, abs=1e-12)
    assert value["full_skill_retry_rate"] == pytest.approx(1 / 3, abs=1e-12)
    assert value["full_skill_retry_success_rate"] == 1.0
    assert value["internalization_deficit_rate"] == pytest.approx(1 / 3, abs=1e-12)
    assert value["pending_analysis_rate"] == 0.0
    assert value["runtime_error_group_rate"] == 0.0
    curriculum = load_curriculum(slime.folder / "curriculum.json")
    assert value["q"] == curriculum.skill_free_probability
    for skill_id, rho in curriculum.rho.items():
        assert value[f"chunk/{skill_id}/target_rho"] == rho
    assert "technical_group_drop_count" not in value
    assert all(isinstance(metric, float) for metric in value.values())


def test_drop_counts_are_slimes_own(finished):
    _, args, groups = finished
    extra = {
        "rollout/dynamic_filter/drop_shopsim_unscored_technical_group": 3,
        "rollout/dynamic_filter/drop_shopsim_zero_std_group": 1,
    }
    metrics = close_step(args, groups, trained=[0, 1], extra=extra)
    assert metrics["rollout/shopsim/technical_group_drop_count"] == 3
    assert metrics["rollout/shopsim/technical_group_drop_rate"] == pytest.approx(3 / 5, abs=1e-12)
    assert metrics["rollout/shopsim/zero_std_group_drop_rate"] == pytest.approx(1 / 3, abs=1e-12)


def test_rows_of_one_episode_count_once_and_what_only_this_engine_knows_is_added(finished):
    _, args, groups = finished
    metrics = close_step(args, groups, trained=[0])
    rows = leaves(groups[0])
    assert len(rows) > 2
    assert metrics["rollout/shopsim/samples_per_trajectory_mean"] == len(rows) / 2
    assert metrics["rollout/shopsim/trainer_token_count"] == sum(len(row.tokens) for row in rows)
    assert metrics["rollout/shopsim/trained_token_count"] == sum(sum(row.loss_mask) for row in rows)
    assert metrics["rollout/shopsim/aborted_group_count"] == 0


def test_without_a_metrics_dictionary_nothing_is_logged(finished):
    _, args, groups = finished
    assert log_rollout(1, args, leaves(groups[0]), None, 1.0) is False
    assert set(runtime().groups.finished) == {0, 1, 2}


def test_without_recorded_groups_the_trainers_rows_are_counted(finished):
    _, args, groups = finished
    runtime().groups.clear()
    metrics = close_step(args, groups, trained=[0, 1])
    assert metrics["rollout/shopsim/trajectory_count"] == 4
    assert metrics["rollout/shopsim/train_group_count"] == 2
    assert metrics["rollout/shopsim/success_rate"] == pytest.approx(1 / 4, abs=1e-12)


def test_groups_that_never_reached_the_filter_are_in_no_metric_but_their_own(finished):
    _, args, groups = finished
    metrics = close_step(args, groups[:2], trained=[0, 1])
    assert metrics["rollout/shopsim/group_count"] == 2
    assert metrics["rollout/shopsim/aborted_group_count"] == 1


def test_a_step_is_written_as_the_embedded_engine_writes_it(finished):
    slime, args, groups = finished
    close_step(args, groups, trained=[0, 1], step=5)
    folder = slime.folder / "training" / "round-000"
    lines = list(read_jsonl(folder / "groups.jsonl"))
    assert [line["group_index"] for line in lines] == [0, 1, 2]
    assert [line["verdict"] for line in lines] == ["kept", "kept_tied", "surplus"]
    assert lines[0]["advantages"] == pytest.approx([0.7071058, -0.7071058], abs=1e-5)
    assert lines[1]["full_skill_retry"]["success"] is True
    assert [line["step"] for line in read_jsonl(folder / "metrics.jsonl")] == [5]
    with gzip.open(folder / "steps" / "step-000005.jsonl.gz", "rt", encoding="utf-8") as handle:
        traces = [json.loads(line) for line in handle]
    assert [trace["training"]["purpose"] for trace in traces] == ["train"] * 6 + ["retry"]
    assert all(trace["tokens"]["sampled"] > 0 for trace in traces)


def test_a_step_done_again_replaces_what_the_first_attempt_wrote(finished):
    slime, args, groups = finished
    folder = slime.folder / "training" / "round-000"
    close_step(args, groups, trained=[0, 1], step=5)
    from trainer.engines.slime import runtime as module

    module.reset()
    slime.play(by_session(half_and_half))
    args = slime.args()
    groups = [slime.generate(slime.group(index), args) for index in range(2)]
    close_step(args, groups, trained=[0], step=5)
    assert [line["group_index"] for line in read_jsonl(folder / "groups.jsonl")] == [0, 1]
    assert [line["step"] for line in read_jsonl(folder / "metrics.jsonl")] == [5]


def test_slimes_loop_with_our_hooks_ends_in_the_metrics_slime_logs(checkout, monkeypatch):
    checkout.play(by_session(half_and_half))
    args = checkout.args(
        rollout_batch_size=2,
        over_sampling_batch_size=3,
        load_debug_rollout_data=None,
        log_reward_category=None,
        rollout_num_gpus=1,
        wandb_always_use_train_step=False,
        use_wandb=False,
        use_tensorboard=False,
        sglang_speculative_algorithm=None,
        sglang_enable_metrics=False,
    )
    waves, output = run_loop(checkout, monkeypatch, args)
    assert waves == 1
    assert len(output.samples) == 2
    logged = {}
    log, log_module = slimes_logging(checkout, monkeypatch)
    monkeypatch.setattr(log_module, "log", lambda args, metrics, step_key: logged.update(metrics))
    log(7, args, leaves(output.samples), dict(output.metrics), 3.0)
    assert logged["rollout/shopsim/train_group_count"] == 2
    assert logged["rollout/shopsim/group_count"] in (2, 3)
    assert "rollout/response_len/mean" in logged
    assert "rollout/step" in logged
    runtime().publisher.wait()
    lines = list(read_jsonl(checkout.folder / "training" / "round-000" / "metrics.jsonl"))
    assert [line["step"] for line in lines] == [7]


def slimes_logging(slime, monkeypatch):
    """slime's function that logs a rollout, and the module whose ``log`` it ends in."""
    try:
        metrics = slime.module("slime.observability.rollout_metrics")
        return metrics.log_rollout_data, slime.module("slime.observability.logging_utils")
    except ModuleNotFoundError:
        rollout_manager.install(monkeypatch)
        return rollout_manager.rollout_module()._log_rollout_data, slime.module(
            "slime.utils.logging_utils"
        )
