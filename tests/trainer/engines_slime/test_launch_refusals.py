"""Everything a launch refuses before it starts, one rule at a time."""

from __future__ import annotations

import pytest

from tests.trainer.engines_slime.launch_files import make_launch, write_hooks
from trainer.engines.slime.checks import failures
from trainer.engines.slime.refusals import launch_checks
from trainer.engines.slime.variables import load_slime_config
from trainer.files import write_json


def refused(path, environ=None, which=lambda name: f"/usr/bin/{name}"):
    environ = environ or {}
    config, _ = load_slime_config(path, environ)
    return {check.name for check in failures(launch_checks(config, environ, which=which))}


def test_a_whole_launch_is_accepted(tmp_path):
    assert refused(make_launch(tmp_path)) == set()


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"NUM_GPUS": "3"}, "gpus.trainer_tp"),
        ({"ROLLOUT_TP_SIZE": "3"}, "gpus.rollout_tp"),
        ({"OVER_SAMPLING_BATCH_SIZE": "8"}, "batch.wave"),
        ({"GLOBAL_BATCH_SIZE": "48"}, "batch.updates"),
        ({"GLOBAL_BATCH_SIZE": "4"}, "batch.whole_groups"),
        ({"NUM_NODES": "2"}, "cluster.nodes"),
        ({"MAX_TOKENS_PER_GPU": "32768"}, "tokens.bin"),
        ({"ROLLOUT_MAX_RESPONSE_LEN": "24576"}, "tokens.response"),
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, "round.visible_gpus"),
        ({"RESUME_ROUND": "4"}, "round.resume_round"),
        ({"RESUME_ROUND": "1"}, "round.resume_point"),
        ({"SHOPSIM_ENV_SLOTS": "40"}, "slots.budget"),
        ({"TASK_DATA": "/nowhere.jsonl"}, "files.task_data"),
        ({"SLIME_DIR": "/nowhere"}, "files.slime_train"),
        ({"MEGATRON_PATH": "/nowhere"}, "files.megatron"),
        ({"HF_CHECKPOINT": "/nowhere"}, "files.hf_checkpoint"),
        ({"TRAIN_LOAD": "/nowhere"}, "files.load"),
        ({"CUSTOM_CONFIG": "/nowhere"}, "files.custom_config"),
        ({"USE_WANDB": "1", "HOME": "/nonexistent"}, "wandb.login"),
    ],
)
def test_each_rule_refuses_by_name(tmp_path, monkeypatch, environ, name):
    monkeypatch.setenv("HOME", str(tmp_path / "no-login-here"))
    assert name in refused(make_launch(tmp_path), environ)


@pytest.mark.parametrize(
    ("section", "values", "name"),
    [
        ("sampling", {"top_p": 0.9}, "sampling.full_distribution"),
        ("sampling", {"top_k": 20}, "sampling.full_distribution"),
        ("algorithm", {"use_tis": True, "use_rollout_logprobs": True}, "algorithm.one_correction"),
    ],
)
def test_settings_that_break_the_sampling_contract_are_refused(tmp_path, section, values, name):
    assert name in refused(make_launch(tmp_path, **{section: values}))


def test_programs_that_are_not_installed_are_named(tmp_path):
    path = make_launch(tmp_path)
    assert refused(path, which=lambda name: None) == {"programs.ray", "programs.python3"}
    remote = {"RAY_ADDRESS": "http://head:8265"}
    assert refused(path, remote, which=lambda name: None) == {"programs.python3"}


def test_round_zero_does_not_overwrite_an_earlier_run(tmp_path):
    path = make_launch(tmp_path)
    (tmp_path / "save").mkdir()
    (tmp_path / "save" / "latest_checkpointed_iteration.txt").write_text("20")
    assert refused(path) == {"round.fresh"}


@pytest.mark.parametrize(("first", "last"), [(0, 19), (1, 20)], ids=["from weights", "converted"])
def test_a_later_round_goes_on_from_the_last_step_of_the_round_before(tmp_path, first, last):
    saved = tmp_path / "save"
    write_json(saved / "first-step.json", {"first_step": first})
    path = make_launch(tmp_path, checkpoints={"load": "save"})
    for iteration, names in ((last - 1, {"round.resume_point"}), (last, set())):
        (saved / "latest_checkpointed_iteration.txt").write_text(str(iteration))
        assert refused(path, {"RESUME_ROUND": "1"}) == names, iteration
        assert refused(path, {"RESUME_ROUND": "1", "TRAIN_SAVE": str(tmp_path / "b")}) == names


def test_a_later_round_does_not_begin_from_the_start_model(tmp_path):
    """Its checkpoints are saved, and yet it would load what round 0 loads."""
    path = make_launch(tmp_path)
    write_json(tmp_path / "save" / "first-step.json", {"first_step": 1})
    (tmp_path / "save" / "latest_checkpointed_iteration.txt").write_text("20")
    assert refused(path, {"RESUME_ROUND": "1"}) == {"round.resume_point"}


def test_without_a_mark_a_later_round_asks_for_the_first_step(tmp_path):
    path = make_launch(tmp_path, checkpoints={"load": "old"})
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "latest_checkpointed_iteration.txt").write_text("20")
    assert refused(path, {"RESUME_ROUND": "1"}) == {"round.resume_point"}
    told = make_launch(tmp_path / "b", loop={"first_step": 1})
    environ = {"RESUME_ROUND": "1", "TRAIN_LOAD": str(tmp_path / "old")}
    assert refused(told, environ) == set()


def test_a_tracker_that_names_no_iteration_is_refused(tmp_path):
    path = make_launch(tmp_path)
    (tmp_path / "save").mkdir()
    (tmp_path / "save" / "latest_checkpointed_iteration.txt").write_text("release")
    assert "round.tracker" in refused(path)


def test_a_wrong_hook_setting_is_refused_with_its_key(tmp_path):
    path = make_launch(tmp_path)
    write_hooks(tmp_path, shopsim_episode_concurrency=True)
    assert "hooks.settings" in refused(path)


def test_sessions_inside_the_worker_need_no_slots(tmp_path):
    path = make_launch(tmp_path)
    write_hooks(tmp_path, shopsim_environment="in_process", shopsim_episode_concurrency=500)
    assert refused(path) == set()


def test_every_refusal_says_what_to_do(tmp_path):
    path = make_launch(tmp_path, sampling={"top_p": 0.5})
    environ = {"NUM_GPUS": "3", "GLOBAL_BATCH_SIZE": "48"}
    config, _ = load_slime_config(path, environ)
    for check in failures(launch_checks(config, environ)):
        assert check.remedy, check.name
        assert check.detail, check.name
