"""Making an experiment: settings frozen into a run folder with all that its rounds begin from."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from django.db import transaction

from intraskill_web.configs.models import ConfigRevision
from intraskill_web.configs.uses import record_uses
from intraskill_web.core import audit
from intraskill_web.experiments.models import Experiment
from trainer.canonical import fingerprint
from trainer.engines.slime.experiment import frozen_files, settled
from trainer.engines.slime.exports import start_checkpoint
from trainer.errors import InputError
from trainer.experiment_config import ExperimentConfig
from trainer.files import write_json, write_text

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


def create_experiment(
    config: ExperimentConfig,
    *,
    actor: AbstractBaseUser | None = None,
    revisions: Mapping[str, ConfigRevision] | None = None,
) -> Experiment:
    """Freeze ``config`` into a run folder, with copies of the first bank and checkpoint.

    ``revisions`` are those it was made from, by kind; the others are recorded by content.

    Raises InputError when the name is taken or a file is missing.
    """
    start = config.start
    for path, is_there, wanted in (
        (start.skillbank, start.skillbank.is_file(), "file"),
        (start.checkpoint, start.checkpoint.is_dir(), "folder"),
    ):
        if not is_there:
            raise InputError(
                f"is no {wanted}" if path.exists() else "no such file",
                file=path,
                field="start",
                remedy="Name a file that exists; paths are taken from the configuration's folder",
            )
    with transaction.atomic():
        if Experiment.objects.filter(name=config.name).exists():
            raise InputError(
                "an experiment of this name exists",
                field="name",
                value=config.name,
                remedy="Choose another name, or resume that experiment",
            )
        experiment = Experiment(
            name=config.name,
            engine=config.engine,
            seed=config.seed,
            rounds_planned=config.rounds,
            owner_id=actor.pk if actor else None,
        )
        _claim(experiment.folder)
        try:
            frozen = _freeze(config, experiment.folder)
            experiment.config = frozen.model_dump(mode="json")
            experiment.config_sha256 = fingerprint(experiment.config)
            experiment.save()
            record_uses(experiment, revisions)
            audit.record(
                "experiment.create",
                actor=actor,
                experiment=experiment.name,
                config_sha256=experiment.config_sha256,
            )
        except BaseException:
            shutil.rmtree(experiment.folder, ignore_errors=True)
            raise
    return experiment


def _claim(folder: Path) -> None:
    """Make the run folder ours: of two that make one experiment at once, one does."""
    try:
        if not folder.exists() or not any(folder.iterdir()):
            (folder / "start").mkdir(parents=True)
            return
    except FileExistsError:
        pass  # somebody else was faster
    raise InputError(
        "the run folder is not empty",
        file=folder,
        remedy="Import it with import_run, or choose another name",
    )


def _freeze(config: ExperimentConfig, folder: Path) -> ExperimentConfig:
    start = folder / "start"
    shutil.copyfile(config.start.skillbank, start / "skillbank.json")
    if config.slime is None:
        shutil.copytree(config.start.checkpoint, start / "checkpoint")
    else:  # weights are too large to be copied
        start_checkpoint(start / "checkpoint", config.start.checkpoint)
        for place, document in frozen_files(config.slime).items():
            text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
            write_text(folder / place, text)
    relative = config.start.model_copy(
        update={"skillbank": Path("start/skillbank.json"), "checkpoint": Path("start/checkpoint")}
    )
    frozen = settled(config).model_copy(update={"start": relative})
    write_json(folder / "experiment.json", frozen.model_dump(mode="json"))
    return frozen
