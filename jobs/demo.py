"""The demonstration: its configuration, and starting or continuing it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from pydantic import ValidationError

from intraskill_web.experiments.flow import OPERATOR
from intraskill_web.experiments.making import create_experiment
from intraskill_web.experiments.models import Attempt, Experiment
from intraskill_web.experiments.services import resume_round, start_round
from jobs.transitions import RoundState
from trainer.config_base import LARGEST_SEED
from trainer.config_files import load_config, parse_config, read_yaml
from trainer.engines.slime.experiment import frozen_files, settled
from trainer.errors import InputError
from trainer.experiment_config import ExperimentConfig, GateSettings

DEMO = "demo"
QUICK = "quick"


def configuration(
    *,
    quick: bool = False,
    seed: int | None = None,
    rounds: int | None = None,
    threads: int | None = None,
    profile: str | None = None,
    path: Path | None = None,
) -> ExperimentConfig:
    """The demo's settings, the tiny ones of ``quick``, or those of the file ``path``; seed, length
    and gate may be others."""
    _require(not (quick and path), "--quick", True, "Leave it out: --config names the settings")
    _require(rounds is None or rounds >= 1, "--rounds", rounds, "Run at least one round")
    _require(
        seed is None or 0 <= seed <= LARGEST_SEED,
        "--seed",
        seed,
        f"Give a number from 0 to {LARGEST_SEED}",
    )
    _require(threads is None or threads >= 1, "--threads", threads, "Give at least one thread")
    shipped = Path(settings.BASE_DIR) / "configs" / "mini"
    path = path or shipped / f"{QUICK if quick else DEMO}.yaml"
    config = load_config(path, ExperimentConfig)
    name = config.name
    if seed is not None:
        config = config.with_seed(seed)
        name = f"{name}-{seed}"
    update: dict[str, Any] = {}
    if config.engine == "local":
        update["threads"] = threads or config.threads or _threads(quick)
    if profile is not None and profile != config.gate.profile:
        gate = {**config.gate.model_dump(), "profile": profile}
        try:
            update["gate"] = parse_config(gate, GateSettings, file=path)
        except InputError as error:
            raise InputError(
                f"the gate of this file allows no other profile: {error.reason}",
                file=path, field="--profile (gate.profile)", value=profile,
                remedy="Leave --profile out, or correct the file",
            ) from error  # fmt: skip
        name = f"{name}-{profile}"
    update["name"] = name
    if rounds is not None:
        update["rounds"] = rounds
    return config.model_copy(update=update)


def _require(met: bool, field: str, value: int | None, remedy: str) -> None:
    if not met:
        raise InputError("cannot be used", field=field, value=value, remedy=remedy)


def _threads(quick: bool) -> int:
    """The engine's thread count, probed once and recorded with the experiment."""
    if quick:
        return 1
    command = [sys.executable, "-m", "trainer", "threads"]
    done = subprocess.run(
        command, cwd=settings.BASE_DIR, check=True, capture_output=True, text=True
    )
    return int(json.loads(done.stdout)["threads"])


def start_or_continue() -> str:
    """Start the demonstration once, or continue it; returns a line that says which."""
    found = Experiment.objects.filter(name=DEMO).first()
    if found is None:
        found = create_experiment(configuration())
    if found.state == RoundState.SUCCEEDED:
        return f"the demonstration is finished: experiment {DEMO}"
    if found.state == RoundState.PLANNED:
        start_round(found)
        return f"the demonstration starts: experiment {DEMO}, {found.config['rounds']} rounds"
    if found.state in (RoundState.RUNNING, RoundState.STOPPING):
        return f"the demonstration continues: experiment {DEMO}"
    if found.hold_reason:
        return f"the demonstration waits: {found.hold_reason}"
    if was_stopped_on_purpose(found):
        return f"the demonstration was stopped and stays so: resume experiment {DEMO} on its page"
    resume_round(found)
    return f"the demonstration is resumed: experiment {DEMO}"


def was_stopped_on_purpose(experiment: Experiment) -> bool:
    """Whether somebody asked for the stop or the pause that holds the experiment now."""
    if experiment.pause_after_stage:
        return True
    latest = Attempt.objects.filter(stage__round__experiment=experiment).order_by("-pk").first()
    return latest is not None and latest.stop_reason == OPERATOR


def run_once(config: ExperimentConfig) -> Experiment:
    """The experiment of these settings, begun or resumed.

    When an experiment of the name was finished, or began with other settings, the new one gets a
    number behind its name.
    """
    name, number = config.name, 1
    while (found := Experiment.objects.filter(name=config.name).first()) is not None:
        if found.state != RoundState.SUCCEEDED and _same(found, config):
            if found.state not in (RoundState.RUNNING, RoundState.STOPPING):
                _begin(found)
            return found
        number += 1
        config = config.model_copy(update={"name": f"{name}-{number}"})
    experiment = create_experiment(config)
    start_round(experiment)
    return experiment


def _same(experiment: Experiment, config: ExperimentConfig) -> bool:
    try:  # what was frozen by an older version lacks keys that have defaults now
        frozen = ExperimentConfig.model_validate(experiment.config).model_dump(mode="json")
    except ValidationError:
        return False
    ours = settled(config)
    if {**frozen, "start": None} != {**ours.model_dump(mode="json"), "start": None}:
        return False
    files = frozen_files(config.slime) if config.slime else {}
    return all(read_yaml(experiment.folder / place) == made for place, made in files.items())


def _begin(experiment: Experiment) -> None:
    if experiment.state == RoundState.PLANNED:
        start_round(experiment)
    else:
        resume_round(experiment)
