"""A host with a slime launch, and an experiment on it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from intraskill_web.experiments.making import create_experiment
from intraskill_web.experiments.models import Experiment
from tests.ports import free_port
from tests.trainer.engines_slime.launch_files import make_launch
from trainer.config_files import parse_config, read_yaml
from trainer.experiment_config import ExperimentConfig
from trainer.files import write_bytes

ROOT = Path(__file__).resolve().parents[2]


def document_of(tmp_path: Path) -> dict[str, Any]:
    """An experiment's file: two rounds of two steps, a launch beside it."""
    launch = make_launch(
        tmp_path / "host",
        cluster={"address": "http://head:8265"},
        batch={
            "rollout_batch_size": 1, "over_sampling_batch_size": 2, "n_samples_per_prompt": 2,
            "global_batch_size": 2,
        },
        loop={"steps_per_round": 2},
        wandb={"use": False},
    )  # fmt: skip
    hooks = launch.with_name("hooks.yaml")
    in_process = {"shopsim_environment": "in_process", "shopsim_world_profile": "standard"}
    hooks.write_text(yaml.safe_dump({**read_yaml(hooks), **in_process}))
    write_bytes(tmp_path / "host" / "hf" / "model.safetensors", b"start")
    python = tmp_path / "python-with-sglang"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m tests.jobs.fake_shopper "$@"\n'
    )
    python.chmod(0o755)
    return {
        "name": "large",
        "engine": "slime",
        "rounds": 2,
        "world": {"profile": "standard"},
        "start": {"skillbank": "host/bank.json", "checkpoint": "host/hf"},
        "slime": {
            "launch": "host/launch.yaml",
            "serving": {"served_name": "toy", "port": free_port(), "python": str(python)},
        },
        "evaluation": {"bare_tasks": 4, "full_tasks": 4, "test_tasks": 2},
        "gate": {"profile": "published", "min_coverage": 0.5},
    }


def made(document: dict[str, Any], folder: Path) -> Experiment:
    return create_experiment(parse_config(document, ExperimentConfig, file=folder / "large.yaml"))
