"""From our rows to what slime's trainer is given: the real conversion, the real schedule."""

from __future__ import annotations

import pytest

from tests.contracts import rollout_manager
from tests.contracts.harness import checkout_path
from tests.contracts.shopping_scripts import by_session, losing, tasks, winning
from trainer.engines.slime import runtime
from trainer.engines.slime.hooks import normalise_rewards
from trainer.engines.slime.samples import leaves
from trainer.engines.slime.source import read_source


def mixed(group, sample, retry):
    task = tasks()[group % len(tasks())]
    return winning(task) if sample % 2 == 0 else losing(task)


@pytest.fixture
def trained(checkout, monkeypatch):
    """The rows of two groups and slime's manager over them, made without starting anything."""
    checkout.play(by_session(mixed))

    def make(layout):
        args = checkout.args(
            shopsim_sample_layout=layout,
            global_batch_size=2,
            use_dynamic_global_batch_size=False,
            disable_rollout_trim_samples=False,
            use_dynamic_batch_size=True,
            max_tokens_per_gpu=200000,
            balance_data=False,
            balance_by_flops=False,
            micro_batch_size=1,
        )
        groups = [checkout.generate(checkout.group(index), args) for index in range(2)]
        rollout_manager.install(monkeypatch)
        try:
            module = rollout_manager.rollout_module()
        except ImportError as error:
            pytest.skip(f"slime's rollout manager cannot be imported here: {error}")
        manager = object.__new__(module.RolloutManager)
        manager.args = args
        manager.custom_reward_post_process_func = normalise_rewards
        manager.custom_convert_samples_to_train_data_func = None
        manager.train_parallel_config = {
            "dp_size": 1,
            "cp_size": 1,
            "vpp_size": 1,
            "microbatch_group_size_per_vp_stage": 1,
        }
        return manager, groups

    return make


@pytest.mark.parametrize("layout", ["turn", "episode"])
def test_slimes_conversion_takes_our_rows_and_our_advantages(trained, layout):
    manager, groups = trained(layout)
    rows = leaves(groups)
    data = manager._convert_samples_to_train_data(rows)
    assert data["tokens"] == [row.tokens for row in rows]
    assert data["loss_masks"] == [row.loss_mask for row in rows]
    assert data["rollout_log_probs"] == [row.rollout_log_probs for row in rows]
    assert data["raw_reward"] == [row.reward["reward"] for row in rows]
    for row, advantage in zip(rows, data["rewards"], strict=True):
        won = row.reward["reward"] > min(r.reward["reward"] for r in rows)
        assert advantage == pytest.approx(0.70710 if won else -0.70710, abs=1e-4)


def counts_episodes(data):
    """Whether this slime counts episodes; one that counts Samples is refused layout ``turn``."""
    counts = "rollout_ids" in data
    assert counts is read_source(checkout_path()).has_rollout_id
    return counts


def test_an_episode_counts_once_however_many_rows_it_has(trained):
    manager, groups = trained("turn")
    rows = leaves(groups)
    data = manager._convert_samples_to_train_data(rows)
    if not counts_episodes(data):
        _, groups = trained("episode")
        assert len(leaves(groups)) == 4
        return
    sampled = {}
    for row in rows:
        sampled[row.rollout_id] = sampled.get(row.rollout_id, 0) + sum(row.loss_mask)
    assert data["rollout_ids"] == [row.rollout_id for row in rows]
    assert data["rollout_mask_sums"] == [sampled[row.rollout_id] for row in rows]


def test_the_nested_output_of_a_step_passes_slimes_own_check(checkout, monkeypatch):
    checkout.play(by_session(mixed))
    groups = [checkout.generate(checkout.group(index)) for index in range(2)]
    check = own_check(checkout, monkeypatch)
    if check is None:
        assert not read_source(checkout_path()).has_rollout_id
        return
    check(groups)
    groups[0][0][0].rollout_id = None
    with pytest.raises(AssertionError, match="rollout_id"):
        check(groups)


def own_check(slime, monkeypatch):
    """slime's function that checks rollout ids, wherever it is; None where there is none."""
    try:
        module = slime.module("slime.observability.rollout_data_utils")
    except ModuleNotFoundError:
        rollout_manager.install(monkeypatch)
        module = rollout_manager.rollout_module()
    names = ("validate_rollout_id_annotated", "_validate_rollout_id_annotated")
    return next((getattr(module, name) for name in names if hasattr(module, name)), None)


@pytest.mark.parametrize("layout", ["turn", "episode"])
def test_updates_hold_whole_episodes(trained, monkeypatch, layout):
    manager, groups = trained(layout)
    rows = leaves(groups)
    data = manager._convert_samples_to_train_data(rows)
    if not counts_episodes(data) and layout == "turn":
        assert len(data["tokens"]) > 4
        return
    boxes = manager._split_train_data_by_dp(data)
    assert len(boxes) == 1
    inner = boxes[0].inner if hasattr(boxes[0], "inner") else boxes[0]._inner
    assert sum(inner["global_batch_sizes"]) == 4
    assert len(inner["tokens"]) == len(rows)


def test_one_sample_per_episode_needs_a_fraction_of_the_trainers_tokens(checkout):
    """training.md §9.10: less than half at four turns, every sampled token kept."""
    tokens, trained = {}, {}
    for layout in ("turn", "episode"):
        checkout.play(by_session(lambda group, sample, retry: winning(tasks()[0])))

        runtime.reset()
        rows = leaves(
            checkout.generate(checkout.group(0), checkout.args(shopsim_sample_layout=layout))
        )
        tokens[layout] = sum(len(row.tokens) for row in rows)
        trained[layout] = sum(sum(row.loss_mask) for row in rows)
    assert trained["turn"] == trained["episode"]
    assert tokens["episode"] < tokens["turn"] / 2
