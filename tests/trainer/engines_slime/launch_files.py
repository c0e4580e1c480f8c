"""A whole launch on disk for tests: a stand-in slime tree, checkpoints, bank, curriculum, tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from trainer.files import write_json, write_text
from trainer.skills.bank import bank_document, parse_bank
from trainer.skills.curriculum import write_curriculum
from trainer.skills.curriculum_build import build_curriculum
from trainer.skills.types import Chunk

CHUNKS = (
    Chunk("chunk-a", "### search - first\n\nLook twice.", "1", {"estimated_effect": 0.2}),
    Chunk("chunk-b", "### buy - second\n\nCheck the size.", "2", {"estimated_effect": 0.1}),
)
TASKS = (3, 5, 8)


def make_launch(root: Path, **changes: dict[str, Any]) -> Path:
    """Write everything a launch needs below ``root``; ``changes`` overlay sections of the file."""
    write_slime(root / "slime")
    write_text(
        root / "slime" / "scripts" / "models" / "toy.sh", "MODEL_ARGS=(\n --num-layers 2\n)\n"
    )
    (root / "Megatron-LM" / "megatron").mkdir(parents=True)
    write_json(root / "hf" / "config.json", {})
    write_text(root / "dist" / "latest_checkpointed_iteration.txt", "0")
    write_bank(root)
    write_tasks(root / "tasks.jsonl", TASKS)
    write_json(
        root / "splits.json", {"splits": {"train": {"task_ids": list(TASKS), "persona": True}}}
    )
    write_hooks(root)
    document: dict[str, Any] = {
        "engine": "slime",
        "paths": {
            "project_root": ".",
            "task_data": "tasks.jsonl",
            "custom_config": "hooks.yaml",
            "split_file": "splits.json",
            "model_script": "toy",
        },
        "checkpoints": {
            "hf_checkpoint": "hf",
            "load": "dist",
            "save": "save",
            "save_hf": "export/step-{rollout_id}",
        },
        "batch": {"over_sampling_batch_size": 32, "global_batch_size": 64},
    }
    for section, values in changes.items():
        document.setdefault(section, {}).update(values)
    path = root / "launch.yaml"
    write_text(path, yaml.safe_dump(document))
    return path


FLAGS = (
    *("--actor-num-nodes", "--actor-num-gpus-per-node", "--num-gpus-per-node", "--colocate"),
    *("--hf-checkpoint", "--save-hf", "--prompt-data", "--input-key", "--metadata-key"),
    *("--apply-chat-template", "--rollout-shuffle", "--num-rollout", "--rollout-batch-size"),
    *("--over-sampling-batch-size", "--n-samples-per-prompt", "--rollout-max-response-len"),
    *(
        "--rollout-max-context-len",
        "--rollout-temperature",
        "--rollout-top-p",
        "--rollout-top-k",
        "--rollout-seed",
    ),
    *("--reward-key", "--advantage-estimator", "--eps-clip", "--eps-clip-high"),
    *("--use-dynamic-batch-size", "--max-tokens-per-gpu", "--balance-data"),
    *("--log-probs-chunk-size", "--recompute-loss-function", "--rollout-num-gpus-per-engine"),
    *("--custom-generate-function-path", "--dynamic-sampling-filter-path"),
    *("--custom-reward-post-process-path", "--rollout-all-samples-process-path"),
    *("--custom-rollout-log-function-path", "--custom-config-path"),
)


def write_slime(root: Path) -> None:
    """A tree with the places and words that are looked for in a slime checkout."""
    write_text(root / "train.py", "")
    write_text(root / "slime" / "utils" / "arguments.py", json.dumps(FLAGS))
    write_text(root / "slime" / "utils" / "types.py", "rollout_id: int | None = None")


def write_bank(root: Path) -> None:
    """A bank of two chunks and the curriculum built from it."""
    document = bank_document(CHUNKS, bank_version="test-1", metadata={})
    write_json(root / "bank.json", document)
    curriculum = build_curriculum(
        parse_bank(document),
        round_id="round-000",
        skill_free_probability=0.2,
        rho_min=0.2,
        rho_max=0.9,
    )
    write_curriculum(root / "curriculum.json", curriculum)


def write_hooks(root: Path, **changes: Any) -> None:
    """The hooks' YAML."""
    values = {
        "shopsim_skillbank_path": "bank.json",
        "shopsim_curriculum_path": "curriculum.json",
        "shopsim_training_output_dir": "training",
        "shopsim_episode_concurrency": 32,
        **changes,
    }
    write_text(root / "hooks.yaml", yaml.safe_dump(values))


def task_row(task_id: int) -> dict[str, Any]:
    """One line of the task data."""
    metadata = {"schema_version": "shopsimrl-slime-tasks-v1", "task_id": task_id, "split": "train"}
    return {"prompt": str(task_id), "metadata": metadata}


def write_tasks(path: Path, tasks: tuple[int, ...]) -> None:
    """Task data in the given order."""
    write_text(path, "".join(json.dumps(task_row(task)) + "\n" for task in tasks))
