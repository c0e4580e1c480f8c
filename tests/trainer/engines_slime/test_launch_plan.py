"""The launch: variables, defaults, command line, environment, dry run."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trainer.engines_slime.launch_files import make_launch, write_hooks
from trainer.engines.slime.config import SlimeConfig
from trainer.engines.slime.plan import plan_launch
from trainer.engines.slime.variables import load_slime_config, variables
from trainer.errors import InputError

REPOSITORY = Path(__file__).resolve().parents[3]

#: training.md §6.1, the table of one job, and §6.4, the loop: variable -> default
DEFAULTS = {
    "NUM_GPUS": 4,
    "TP_SIZE": 2,
    "ROLLOUT_TP_SIZE": 1,
    "ROLLOUT_BATCH_SIZE": 16,
    "N_SAMPLES_PER_PROMPT": 8,
    "NUM_ROLLOUT": 21,
    "MAX_TOKENS_PER_GPU": 16384,
    "ROLLOUT_MAX_CONTEXT_LEN": 24576,
    "ROLLOUT_MAX_RESPONSE_LEN": 4096,
    "LOG_PROBS_CHUNK_SIZE": 1024,
    "SGLANG_MEM_FRACTION": 0.7,
    "SAVE_INTERVAL": 20,
    "USE_WANDB": False,
    "WANDB_MODE": "online",
    "WANDB_PROJECT": "shopsimrl",
    "WANDB_GROUP": "shopsimrl-training",
    "MASTER_ADDR": "127.0.0.1",
    "STEPS_PER_ROUND": 20,
    "NUM_ROUNDS": 4,
    "RESUME_ROUND": 0,
    "SGLANG_PORT": 30000,
    "SHOPSIM_PORT": 5700,
    "SHOPSIM_ENV_SLOTS": 48,
    "CUDA_VISIBLE_DEVICES": "0,1,2,3",
}
DERIVED_DEFAULTS = {
    "SLIME_DIR", "MEGATRON_PATH", "TASK_DATA", "CUSTOM_CONFIG", "OVER_SAMPLING_BATCH_SIZE",
    "GLOBAL_BATCH_SIZE", "SAVE_HF", "WANDB_DIR", "WANDB_ENTITY", "INITIAL_SKILLBANK",
    "INITIAL_CURRICULUM", "SYS_CACHE_ROOT",
}  # fmt: skip


def test_every_variable_of_the_specification_has_its_default():
    table = {item.name: item for item in variables()}
    for name, default in DEFAULTS.items():
        assert table[name].default == default, name
    for name in DERIVED_DEFAULTS:
        assert table[name].default is None, name
    assert {name for name, item in table.items() if item.required} == {
        "HF_CHECKPOINT",
        "TRAIN_LOAD",
        "TRAIN_SAVE",
    }
    assert all(item.meaning for item in table.values())


def test_derived_defaults_follow_the_other_values(tmp_path):
    path = make_launch(tmp_path)
    document = path.read_text().replace("over_sampling_batch_size: 32", "num_rollout: 21")
    path.write_text(document.replace("global_batch_size: 64", "n_samples_per_prompt: 4"))
    config, _ = load_slime_config(path)
    assert config.batch.wave == 16
    assert config.batch.episodes_per_update == 64 == config.batch.episodes_kept
    assert config.wandb_dir == tmp_path / "runs" / "wandb"
    assert config.paths.slime == tmp_path / "slime"
    assert config.paths.megatron == tmp_path / "Megatron-LM"


def test_the_command_line_is_the_published_one_flag_by_flag(tmp_path):
    plan = plan_launch(make_launch(tmp_path, wandb={"use": True, "entity": "team"}), {})
    root = str(tmp_path)
    expected = f"""python3 {root}/slime/train.py
      --actor-num-nodes 1 --actor-num-gpus-per-node 4 --num-gpus-per-node 4 --colocate
      --num-layers 2
      --hf-checkpoint {root}/hf --load {root}/dist --save {root}/save --save-interval 20
      --save-hf {root}/export/step-{{rollout_id}}
      --prompt-data {root}/tasks.jsonl --input-key prompt --metadata-key metadata
      --apply-chat-template --rollout-shuffle
      --num-rollout 21 --rollout-batch-size 16 --over-sampling-batch-size 32
      --n-samples-per-prompt 8 --global-batch-size 64
      --rollout-max-response-len 4096 --rollout-max-context-len 24576
      --rollout-temperature 0.6 --rollout-top-p 1.0 --rollout-top-k -1 --reward-key reward
      --advantage-estimator grpo --eps-clip 0.2 --eps-clip-high 0.28
      --optimizer adam --lr 1e-06 --lr-decay-style constant --override-opt-param-scheduler
      --weight-decay 0.1 --adam-beta1 0.9 --adam-beta2 0.98
      --tensor-model-parallel-size 2 --sequence-parallel --use-dynamic-batch-size
      --max-tokens-per-gpu 16384 --balance-data --log-probs-chunk-size 1024
      --recompute-loss-function --recompute-granularity full --recompute-method uniform
      --recompute-num-layers 1 --attention-dropout 0.0 --hidden-dropout 0.0
      --accumulate-allreduce-grads-in-fp32 --attention-softmax-in-fp32 --attention-backend flash
      --rollout-num-gpus-per-engine 1 --sglang-mem-fraction-static 0.7
      --router-policy consistent_hashing
      --sglang-tool-call-parser qwen3_coder --sglang-reasoning-parser qwen3
      --custom-generate-function-path trainer.engines.slime.hooks.generate
      --dynamic-sampling-filter-path trainer.engines.slime.hooks.filter_group
      --custom-reward-post-process-path trainer.engines.slime.hooks.normalise_rewards
      --rollout-all-samples-process-path trainer.engines.slime.hooks.record_groups
      --custom-rollout-log-function-path trainer.engines.slime.hooks.log_rollout
      --custom-config-path {root}/hooks.yaml
      --use-wandb --wandb-mode online --wandb-project shopsimrl
      --wandb-group shopsimrl-training --wandb-dir {root}/runs/wandb
      --disable-wandb-random-suffix --wandb-team team"""
    assert list(plan.argv) == expected.split()
    assert shlex.split(plan.entrypoint) == expected.split()


def test_flags_that_depend_on_settings_come_and_go(tmp_path):
    plan = plan_launch(
        make_launch(
            tmp_path,
            cluster={"tp_size": 1},
            algorithm={"use_rollout_logprobs": True},
            checkpoints={"save_hf": None},
        ),
        {},
    )
    argv = plan.argv
    assert "--sequence-parallel" not in argv
    assert "--save-hf" not in argv
    assert "--use-wandb" not in argv
    assert "--use-rollout-logprobs" in argv
    assert "--use-tis" not in argv
    tis = plan_launch(make_launch(tmp_path / "b", algorithm={"use_tis": True}), {})
    assert "--use-tis" in tis.argv


def test_a_set_variable_overrides_the_file_and_is_reported(tmp_path):
    environ = {"NUM_GPUS": "8", "USE_WANDB": "1", "TP_SIZE": "", "TASK_DATA": "/data/t.jsonl"}
    plan = plan_launch(make_launch(tmp_path), environ)
    assert plan.config.cluster.num_gpus == 8
    assert plan.config.cluster.tp_size == 2
    assert plan.config.wandb.use is True
    assert plan.to_json()["overridden_by_environment"] == {
        "NUM_GPUS": "8",
        "USE_WANDB": "1",
        "TASK_DATA": "/data/t.jsonl",
    }


@pytest.mark.parametrize(
    ("environ", "field"),
    [
        ({"USE_WANDB": "yes"}, "wandb.use"),
        ({"NUM_GPUS": "0"}, "cluster.num_gpus"),
        ({"ROLLOUT_BATCH_SIZE": "-1"}, "batch.rollout_batch_size"),
        ({"RESUME_ROUND": "one"}, "loop.resume_round"),
        ({"WANDB_MODE": "sometimes"}, "wandb.mode"),
    ],
)
def test_a_value_that_is_none_names_its_field(tmp_path, environ, field):
    with pytest.raises(InputError) as caught:
        plan_launch(make_launch(tmp_path), environ)
    assert caught.value.field == field


def test_a_missing_checkpoint_setting_is_named():
    with pytest.raises(InputError, match="checkpoints"):
        from trainer.config_files import parse_config

        parse_config({"engine": "slime"}, SlimeConfig, file=Path("x.yaml"))


def test_no_secret_reaches_arguments_or_the_printed_plan(tmp_path):
    secret = "sk-0123456789abcdef"
    environ = {"WANDB_API_KEY": secret, "USE_WANDB": "1"}
    plan = plan_launch(make_launch(tmp_path), environ)
    assert plan.environment.secret == {"WANDB_API_KEY": secret}
    printed = json.dumps(plan.to_json())
    assert secret not in printed
    assert secret not in repr(plan.environment)
    assert "--wandb-key" not in plan.argv
    assert plan.to_json()["environment"]["WANDB_API_KEY"] == "(from the environment)"


def test_the_token_of_the_shop_service_reaches_the_job_and_nothing_that_is_shown(tmp_path):
    launch = make_launch(tmp_path)
    write_hooks(tmp_path, shopsim_environment_token_env="SHOP_TOKEN")
    plan = plan_launch(launch, {"SHOP_TOKEN": "b7d2-only-for-this-test"})
    assert plan.environment.secret == {"SHOP_TOKEN": "b7d2-only-for-this-test"}
    assert plan.to_json()["environment"]["SHOP_TOKEN"] == "(from the environment)"
    assert "b7d2" not in json.dumps(plan.to_json()) + repr(plan.environment)
    unset = {check.name: check for check in plan_launch(launch, {}).checks}["hooks.token"]
    assert unset.state == "failed"
    assert "export SHOP_TOKEN" in unset.remedy


def test_the_job_environment_holds_what_every_worker_needs(tmp_path):
    environ = {"TMPDIR": "/scratch", "XDG_CACHE_HOME": "/cache", "HOME": "/root"}
    path = make_launch(tmp_path, wandb={"use": True, "group": "g"})
    public = plan_launch(path, environ).environment.public
    assert public["PYTHONPATH"] == f"{tmp_path}:{tmp_path}/slime:{tmp_path}/Megatron-LM"
    assert public["SHOPSIMRL_PROJECT_ROOT"] == str(tmp_path)
    assert public["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"
    assert public["NCCL_NVLS_ENABLE"] == "0"
    assert public["WANDB_GROUP"] == "g"
    assert public["TMPDIR"] == "/scratch"
    assert public["XDG_CACHE_HOME"] == "/cache"
    assert "HOME" not in public


def test_caches_move_below_one_folder_when_it_is_named(tmp_path):
    path = make_launch(tmp_path, cluster={"cache_root": "caches"})
    plan = plan_launch(path, {"TMPDIR": "/scratch"})
    assert plan.environment.public["TMPDIR"] == str(tmp_path / "caches" / "tmp")
    assert plan.environment.public["RAY_TMPDIR"] == str(tmp_path / "caches" / "ray")
    assert plan.ray_head is not None
    assert plan.ray_head[-2:] == ("--temp-dir", str(tmp_path / "caches" / "ray"))


def test_the_local_head_listens_on_loopback_and_none_is_started_for_a_cluster(tmp_path):
    path = make_launch(tmp_path)
    head = plan_launch(path, {}).ray_head
    assert head is not None
    assert head[:4] == ("ray", "start", "--head", "--block")
    assert "0.0.0.0" not in head
    assert head[head.index("--dashboard-host") + 1] == "127.0.0.1"
    remote = plan_launch(path, {"RAY_ADDRESS": "http://head:8265", "NUM_NODES": "2"})
    assert remote.ray_head is None
    assert remote.job_server == "http://head:8265"
    assert remote.argv[remote.argv.index("--actor-num-nodes") + 1] == "2"


def test_dry_run_prints_the_whole_plan_and_refuses_with_exit_code_two(tmp_path):
    path = make_launch(tmp_path, batch={"global_batch_size": 60})
    done = subprocess.run(
        [sys.executable, "-m", "trainer.engines.slime", str(path), "--dry-run"],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env={"PATH": os.environ["PATH"]},
        check=False,
    )
    assert done.returncode == 2
    document = json.loads(done.stdout)
    assert document["ready"] is False
    assert document["entrypoint"].startswith("python3 ")
    assert "batch.updates: 128 episodes kept, 60 per update" in done.stderr


def test_the_shipped_configuration_is_the_published_one():
    config, _ = load_slime_config(REPOSITORY / "configs" / "slime" / "train.yaml")
    assert config.batch.wave == 32
    assert config.batch.episodes_per_update == 64
    assert config.checkpoints.save_interval == 10000
    assert config.wandb.use is True
    assert config.wandb.group == "qwen35-4b-train-80"


def test_the_table_of_variables_is_in_the_documentation():
    page = (REPOSITORY / "docs" / "en" / "gpu-host.md").read_text(encoding="utf-8")
    for item in variables():
        assert re.search(rf"\| `{item.name}` \|", page), item.name


def test_the_documentation_names_every_hook_setting_and_the_tested_versions():
    from trainer.engines.slime.settings import HookSettings, published_name
    from trainer.engines.slime.versions import SLIME_COMMITS, TESTED

    page = (REPOSITORY / "docs" / "en" / "gpu-host.md").read_text(encoding="utf-8")
    for field in HookSettings.model_fields:
        assert f"| `{published_name(field)}` |" in page, field
    for commit in SLIME_COMMITS:
        assert commit[:12] in page
    for item in TESTED:
        row = next(line for line in page.splitlines() if line.startswith(f"| {item.package} |"))
        assert ", ".join(item.versions) in row


def test_slime_is_never_installed_from_the_index():
    for path in (REPOSITORY / "requirements").glob("*.txt"):
        for line in path.read_text().splitlines():
            assert not re.match(r"slime\b", line), f"{path.name}: {line}"
