"""The hooks as slime finds them: by path, with its signatures, without pulling in a GPU stack."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contracts.harness import checkout_path
from tests.trainer.engines_slime.launch_files import make_launch
from trainer.engines.slime.command import HOOKS, model_arguments, slime_arguments
from trainer.engines.slime.source import read_source, unknown_flags
from trainer.engines.slime.variables import load_slime_config
from trainer.engines.slime.versions import SLIME_COMMITS

REPOSITORY = Path(__file__).resolve().parents[2]
SIGNATURES = {
    "--custom-generate-function-path": ("args", "sample", "sampling_params"),
    "--dynamic-sampling-filter-path": ("args", "samples"),
    "--custom-reward-post-process-path": ("args", "samples"),
    "--rollout-all-samples-process-path": ("args", "all_groups", "data_source"),
    "--custom-rollout-log-function-path": (
        "rollout_id",
        "args",
        "samples",
        "rollout_extra_metrics",
        "rollout_time",
    ),
}


def test_the_hooks_import_neither_slime_nor_ray_torch_or_sglang():
    code = (
        "import sys, trainer.engines.slime.hooks, trainer.engines.slime.preflight\n"
        "heavy = {'slime', 'ray', 'torch', 'sglang', 'transformers', 'wandb', 'megatron'}\n"
        "print(sorted(heavy & {name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("flag", HOOKS)
def test_slimes_own_loader_finds_each_hook_with_its_signature(checkout, flag):
    load = checkout.module("slime.utils.misc").load_function
    hook = load(HOOKS[flag])
    names = tuple(inspect.signature(hook).parameters)
    assert names[: len(SIGNATURES[flag])] == SIGNATURES[flag]
    if flag == "--custom-generate-function-path":
        assert "evaluation" in names


def test_every_flag_of_the_launch_is_known_to_the_checkout(tmp_path):
    path = checkout_path()
    launch = make_launch(
        tmp_path,
        paths={"slime_dir": str(path), "model_script": "qwen3.5-4B"},
        wandb={"use": True, "entity": "team"},
        algorithm={"use_rollout_logprobs": True},
    )
    config, _ = load_slime_config(launch)
    model_args = model_arguments(path / "scripts" / "models" / "qwen3.5-4B.sh")
    source = read_source(path)
    assert len(source.flags) > 200
    assert unknown_flags(source, slime_arguments(config, model_args), model_args) == []
    assert model_args[:2] == ["--spec", "slime_plugins.models.qwen3_5"]
    assert "248320" in model_args


def test_the_launch_passes_the_whole_preflight_with_the_checkout(tmp_path):
    from trainer.engines.slime.preflight import check_slime

    path = checkout_path()
    launch = make_launch(tmp_path, paths={"slime_dir": str(path), "model_script": "qwen3.5-4B"})
    document = check_slime(launch, {})
    failed = {item["name"]: item for item in document["checks"] if item["state"] == "failed"}
    source = read_source(path)
    allowed = {"programs.ray"} | (set() if source.has_rollout_id else {"slime.rollout_id"})
    assert set(failed) <= allowed
    state = {item["name"]: item["state"] for item in document["checks"]}
    assert state["versions.slime"] == ("passed" if source.commit in SLIME_COMMITS else "warning")


def test_slimes_dataset_needs_the_chat_template_and_keeps_the_task(checkout, tmp_path, monkeypatch):
    """Why the launch names ``--apply-chat-template`` although the prompt is never used."""
    from tests.contracts.toy_tokenizer import ToyTokenizer
    from tests.trainer.engines_slime.launch_files import write_tasks
    from trainer.engines.slime.requests import task_of

    write_tasks(tmp_path / "tasks.jsonl", (3, 5))
    dataset = checkout.module("slime.utils.data").Dataset
    processing = checkout.module("slime.utils.processing_utils")
    monkeypatch.setattr(processing, "process_vision_info", lambda prompt, processor: None)
    path, keys = str(tmp_path / "tasks.jsonl"), {"prompt_key": "prompt"}
    with pytest.raises(AssertionError, match="prompt must be a list"):
        dataset(path, ToyTokenizer(), object(), None, **keys)
    made = dataset(path, ToyTokenizer(), object(), None, apply_chat_template=True, **keys)
    assert [task_of(sample) for sample in made.samples] == [3, 5]
