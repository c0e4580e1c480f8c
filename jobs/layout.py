"""Where everything lies in an experiment's run folder, and what a stage has to run.

Pure: paths and values only. The names are the contract of docs/design/architecture.md.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from trainer.config import Config
from trainer.engines.slime.experiment import HOOKS, LAUNCH
from trainer.experiment_config import ExperimentConfig
from trainer.files import read_json, write_text


@dataclass(frozen=True, slots=True)
class Part:
    """One configuration of a command and the folder in which it works.

    The folder gets ``progress.json``; ``expected`` is the number of its units of work when that is
    known beforehand.
    """

    key: str
    folder: Path
    config: Config
    expected: int = 0


@dataclass(frozen=True, slots=True)
class Command:
    """One ``python -m trainer`` of a stage; its parts' configurations are its last arguments.

    ``program`` is what the interpreter runs where that is not the trainer itself.
    """

    key: str
    arguments: tuple[str, ...]
    parts: tuple[Part, ...] = ()
    program: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """One round of a frozen experiment: its settings and its paths. ``number`` counts from 0.

    ``rounds`` is how many are planned now, which may be more than the frozen settings foresaw.
    ``plays_test`` is False where the test after the last round is left out.
    """

    config: ExperimentConfig
    run: Path
    number: int
    rounds: int
    plays_test: bool = True

    @property
    def round_id(self) -> str:
        return f"round-{self.number:03d}"

    @property
    def folder(self) -> Path:
        return self.run / self.round_id

    @property
    def previous(self) -> RoundPlan | None:
        return replace(self, number=self.number - 1) if self.number else None

    @property
    def is_last(self) -> bool:
        return self.number + 1 == self.rounds

    @property
    def ends_with_test(self) -> bool:
        """Whether this round plays the test split at its end."""
        return self.is_last and self.plays_test

    @property
    def last_step(self) -> int:
        """Training steps behind the checkpoint that this round makes."""
        return (self.number + 1) * self.config.train.steps

    @property
    def start_bank(self) -> Path:
        return self.run / "start" / "skillbank.json"

    @property
    def start_checkpoint(self) -> Path:
        return self.run / "start" / "checkpoint"

    @property
    def start_launch(self) -> Path:
        """The frozen launch file of an experiment on slime."""
        return self.run / LAUNCH

    @property
    def start_hooks(self) -> Path:
        """The frozen hooks of an experiment on slime."""
        return self.run / HOOKS

    @property
    def hooks(self) -> Path:
        """The round's hooks, where it trains on slime."""
        return self.config_file("train", "hooks")

    @property
    def bank(self) -> Path:
        """The bank S_t that this round trains and validates with."""
        return self.folder / "skillbank.json"

    @property
    def curriculum(self) -> Path:
        return self.folder / "curriculum.json"

    @property
    def trained_from(self) -> Path:
        """The checkpoint that this round's training starts from."""
        return self.previous.checkpoint if self.previous else self.start_checkpoint

    @property
    def checkpoint(self) -> Path:
        """The checkpoint that this round's training makes."""
        return self.folder / "train" / "checkpoint"

    @property
    def selected_bank(self) -> Path:
        return self.folder / "gate" / "selected_skillbank.json"

    def config_file(self, stage: str, key: str) -> Path:
        """The frozen configuration of one part of one stage."""
        name = stage if key == stage else f"{stage}-{key}"
        return self.folder / "config" / f"{name}.yaml"

    @property
    def own_config(self) -> Path:
        """The round's own ExperimentConfig; there only where it differs from the experiment's."""
        return self.folder / "config" / "round.json"

    def from_config(self, path: Path) -> Path:
        """``path`` as configuration files name it: relative to their folder, so a run can move."""
        return Path(os.path.relpath(path, self.folder / "config"))


def write_config(path: Path, config: Config) -> None:
    """Publish a command's configuration as YAML."""
    text = yaml.safe_dump(
        config.model_dump(mode="json", exclude_none=True), sort_keys=False, allow_unicode=True
    )
    write_text(path, text)


def read_experiment(run: Path) -> ExperimentConfig:
    """The frozen configuration of the experiment in ``run``."""
    return ExperimentConfig.model_validate(read_json(run / "experiment.json"))
