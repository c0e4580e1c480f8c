"""How a command of a stage is called: its line, its environment, where its words go."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from intraskill_web.experiments.models import Attempt
from jobs import environment, launchers
from jobs.launchers.ray_left import state_file
from jobs.layout import Command, RoundPlan
from trainer.canonical import fingerprint, sha256_file

TRAINER = ("-m", "trainer")


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call. ``digest`` names the contents of its configurations."""

    argv: Sequence[str]
    env: Mapping[str, str]
    results: Path | None
    digest: str


def invocation(attempt: Attempt, plan: RoundPlan, command: Command) -> Invocation:
    """The call of ``command`` for this attempt, its configurations being written."""
    stage = attempt.stage
    configs = [plan.config_file(stage.kind, part.key) for part in command.parts]
    env = environment.for_trainer()
    program = command.program or TRAINER
    plain = [sys.executable, *program, *command.arguments, *map(str, configs)]
    argv = launchers.command_line(
        plain,
        stage="" if command.program else stage.kind,
        name=f"{stage.round.experiment.name}-{plan.round_id}",
        state=state_file(plan.folder, command.key),
        cwd=settings.BASE_DIR,
        environ=env,
    )
    return Invocation(
        argv,
        env,
        # a job of a cluster says everything on one stream
        results_file(attempt, command) if argv == plain else None,
        fingerprint([sha256_file(path) for path in configs]) if configs else "",
    )


def results_file(attempt: Attempt, command: Command) -> Path:
    """Its standard output."""
    return attempt.log_file.with_suffix(f".{command.key}.out")


def exit_file(attempt: Attempt, command: Command) -> Path:
    """What its keeper writes at its end."""
    return attempt.log_file.with_suffix(f".{command.key}.exit")
