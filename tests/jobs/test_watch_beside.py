"""A watch beside training: started by the train stage where the experiment asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jobs.layout import RoundPlan
from jobs.stages import train
from trainer.config import AnalystConfig
from trainer.config_files import load_config
from trainer.experiment_config import ExperimentConfig


def plan(folder: Path, analyst: Any) -> RoundPlan:
    config = ExperimentConfig.model_validate(
        {
            "name": "x",
            "start": {"skillbank": "bank.json", "checkpoint": "checkpoint"},
            "analyst": analyst,
        }
    )
    return RoundPlan(config, folder, 0, 1)


def test_training_alone_is_the_rule(tmp_path: Path) -> None:
    alone = plan(tmp_path, "rule_based")
    train.prepare(alone)
    (command,) = train.commands(alone)
    assert command.arguments == ("train",)
    assert not train.watch_config(alone).exists()


def test_a_watch_is_told_what_the_analysis_will_be_told(tmp_path: Path) -> None:
    watched = plan(tmp_path, {"kind": "rule_based", "watch": True, "probe": {"enabled": True}})
    train.prepare(watched)
    (command,) = train.commands(watched)
    path = train.watch_config(watched)
    assert command.arguments == ("analyst", "beside", str(path))
    assert [part.key for part in command.parts] == ["train"]
    config = load_config(path, AnalystConfig)
    assert config.output_dir == (tmp_path / "round-000" / "analysis").resolve()
    assert config.training_dir == (tmp_path / "round-000" / "train").resolve()
    assert config.analyst == watched.config.analyst
