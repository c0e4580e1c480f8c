"""Launch files of the slime engine: those of this installation, and that of a round to come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from django.conf import settings

from intraskill_web.experiments.models import Experiment
from trainer.config_files import is_launch, parse_config, read_yaml
from trainer.engines.slime.experiment import HOOKS, LAUNCH, round_launch
from trainer.errors import InputError
from trainer.experiment_config import ExperimentConfig
from trainer.files import write_text


def launch_files() -> list[Path]:
    """Launch files of the slime engine that this installation knows."""
    folder = Path(settings.INTRASKILL_LAUNCH_FOLDER)
    return [file for file in sorted(folder.glob("*.yaml")) if _is_launch(file)]


def _is_launch(file: Path) -> bool:
    try:
        return is_launch(read_yaml(file))
    except InputError:
        return False


def launch_of(experiment: Experiment, number: int, read: dict[str, Any]) -> Path:
    """The launch file that the round will have, but for hooks, which name what it freezes."""
    folder = experiment.folder
    launch = round_launch(
        parse_config(read, ExperimentConfig, file=folder / "experiment.json"),
        folder / LAUNCH,
        number=number,
        rounds=max(experiment.rounds_planned, number + 1),
        out=folder / f"round-{number:03d}" / "train",
        before=folder / f"round-{number - 1:03d}" / "train" if number else None,
        hooks=folder / HOOKS,
    )
    file = folder / "preflight" / f"round-{number:03d}-launch.yaml"
    write_text(file, yaml.safe_dump(launch.model_dump(mode="json"), sort_keys=False))
    return file
