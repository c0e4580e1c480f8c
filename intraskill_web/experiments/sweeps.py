"""Making a sweep: one experiment an arm and seed. ``jobs.sweeps`` looks at and begins them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import IntegrityError, transaction
from pydantic import ValidationError

from intraskill_web.core import audit
from intraskill_web.experiments import making
from intraskill_web.experiments.models import Experiment, Sweep
from intraskill_web.experiments.presets import arm_config, preset
from trainer.canonical import safe_name
from trainer.config_base import LARGEST_SEED
from trainer.config_files import first_mistake, load_config
from trainer.engines.slime.experiment import from_folder
from trainer.errors import InputError
from trainer.experiment_config import ExperimentConfig

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

MOST = 64  # experiments of one sweep
LONGEST_NAME = 40
TEMPLATES = ("demo", "analyst", "quick")  # of configs/mini


def bases() -> list[str]:
    """What a sweep can begin from: the configurations of the shop at hand, then experiments."""
    names = Experiment.objects.filter(sweep=None).values_list("name", "config")
    own = [name for name, config in names if "imported" not in config]
    return [*(f"mini/{name}" for name in TEMPLATES), *own]


def base_config(name: str) -> ExperimentConfig:
    """The configuration of a base by its name. Raises InputError when there is none."""
    if name.startswith("mini/") and name.removeprefix("mini/") in TEMPLATES:
        path = Path(settings.BASE_DIR) / "configs" / f"{name}.yaml"
        return load_config(path, ExperimentConfig)
    found = Experiment.objects.filter(name=name).first()
    if found is None or found.imported:
        raise InputError(
            "no such base", field="base", value=name, remedy=f"Known: {', '.join(bases()[:20])}"
        )
    try:
        config = ExperimentConfig.model_validate(found.config)
    except ValidationError as error:  # another version of the software made it
        first, field = first_mistake(error)
        raise InputError(
            f"the settings of this base are not understood: {first['msg']}",
            field=field,
            value=name,
            remedy="Take another base, and change what differs",
        ) from error
    return from_folder(config, found.folder)


def start_sweep(
    name: str,
    base: ExperimentConfig,
    *,
    arms: Sequence[str],
    seeds: Sequence[int],
    actor: AbstractBaseUser | None = None,
) -> Sweep:
    """Make every experiment of the sweep. Raises InputError. When it fails nothing is left of it.

    Their first rounds begin by themselves, in this order, each after its preflight, which takes
    seconds an arm. Arms share their seeds, so they are paired: equal tasks, and equal luck where
    they act alike.
    """
    configs = arm_configs(name, base, arms=arms, seeds=seeds)
    made: list[Experiment] = []
    try:
        with transaction.atomic():
            sweep = Sweep(
                name=name,
                base=base.model_dump(mode="json"),
                arms=list(arms),
                seeds=list(seeds),
                owner_id=actor.pk if actor else None,
            )
            try:
                sweep.save(force_insert=True)
            except IntegrityError:
                raise _taken(name) from None  # by somebody who was faster
            for arm, config in configs:
                experiment = making.create_experiment(config, actor=actor)
                made.append(experiment)
                experiment.sweep, experiment.arm = sweep, arm
                experiment.save(update_fields=["sweep", "arm", "updated_at"])
            audit.record(
                "sweep.start", actor=actor, subject=name, arms=list(arms), seeds=list(seeds)
            )
    except BaseException:
        for experiment in made:
            shutil.rmtree(experiment.folder, ignore_errors=True)
        raise
    return sweep


def arm_configs(
    name: str, base: ExperimentConfig, *, arms: Sequence[str], seeds: Sequence[int]
) -> list[tuple[str, ExperimentConfig]]:
    """Every experiment of the sweep in the order in which they begin. Raises InputError."""
    _refuse(name, arms, seeds)
    return [
        (arm, arm_config(base, preset(arm), seed=seed, name=f"{name}-{arm}-{seed}"))
        for seed in seeds
        for arm in arms
    ]


def not_begun(sweep: Sweep) -> list[Experiment]:
    """Its experiments that have no round yet, in their order."""
    return list(Experiment.objects.filter(sweep=sweep, rounds=None).order_by("pk"))


def withdraw(sweep: Sweep, *, actor: AbstractBaseUser | None = None) -> int:
    """Take back what did not begin, with its folders; how many. With the last of its experiments
    the sweep goes too. Raises InputError when all have begun.
    """
    with transaction.atomic():
        rows = Experiment.objects.select_for_update(of=("self",))  # not the rounds it lacks
        locked = set(rows.filter(sweep=sweep, rounds=None).order_by("pk"))
        # Whoever held a lock may have begun a round: what was asked before the wait is asked again.
        waiting = [e for e in not_begun(sweep) if e in locked]
        if not waiting:
            raise InputError("all its experiments have begun", field="sweep", value=sweep.name,
                             remedy="Stop them one by one")  # fmt: skip
        folders = [experiment.folder for experiment in waiting]
        Experiment.objects.filter(pk__in=[experiment.pk for experiment in waiting]).delete()
        if not sweep.experiments.exists():
            Sweep.objects.filter(pk=sweep.pk).delete()
        audit.record("sweep.withdraw", actor=actor, subject=sweep.name, experiments=len(waiting))
        for folder in folders:
            transaction.on_commit(partial(shutil.rmtree, folder, ignore_errors=True))
    return len(waiting)


def _taken(name: str) -> InputError:
    return InputError(
        "a sweep of this name exists", field="name", value=name, remedy="Choose another name"
    )


def _refuse(name: str, arms: Sequence[str], seeds: Sequence[int]) -> None:
    if not name or safe_name(name) != name or len(name) > LONGEST_NAME or "." in name:
        raise InputError(
            "letters, digits, - and _, at most 40", field="name", value=name,
            remedy="Choose another name",
        )  # fmt: skip
    if Sweep.objects.filter(name=name).exists():
        raise _taken(name)
    for field, values in (("arms", arms), ("seeds", seeds)):
        if not values or len(set(values)) != len(values):
            raise InputError("one or more, each once", field=field, value=list(values))
    if any(not 0 <= seed <= LARGEST_SEED for seed in seeds):
        raise InputError(
            f"a number from 0 to {LARGEST_SEED}", field="seeds", value=list(seeds),
            remedy="Choose other seeds",
        )  # fmt: skip
    if len(arms) * len(seeds) > MOST:
        raise InputError(
            f"{len(arms)} arms × {len(seeds)} seeds are more than {MOST} experiments",
            field="seeds",
            value=list(seeds),
            remedy="Take fewer",
        )
