"""The base of ``round_start | round_stop | round_resume | round_status``."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from intraskill_web.core.commands import JsonCommand, experiment_named
from intraskill_web.experiments.models import Experiment
from intraskill_web.experiments.queries import round_of, round_status
from trainer.errors import typed_as


class RoundCommand(JsonCommand):
    """Subclasses write ``act``; the round's status is printed after it."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("name", help="the experiment")
        parser.add_argument("--round", type=int, help="default: the latest")

    def run(self, **options: Any) -> bool:
        """Act and report."""
        experiment = experiment_named(options["name"])
        done = self.act(experiment, options["round"])
        with typed_as(round="--round"):
            round_ = round_of(experiment, options["round"])
        status = round_status(round_)
        stages = ", ".join(f"{s['stage']} {s['state'] or '-'}" for s in status["stages"])
        self.emit(status, f"{experiment.name} round {round_.number}: {round_.state} ({stages})")
        return done

    def act(self, experiment: Experiment, number: int | None) -> bool:
        """Do something to the experiment; False when there was nothing to do.

        Raises InputError when it may not be done.
        """
        return True
