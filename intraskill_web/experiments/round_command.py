"""The base of ``round_start | round_stop | round_resume | round_status``."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from intraskill_web.core.commands import JsonCommand, experiment_named
from intraskill_web.experiments.models import Experiment, Round
from intraskill_web.experiments.queries import round_status
from trainer.errors import InputError


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
        round_ = self.round_of(experiment, options["round"])
        status = round_status(round_)
        stages = ", ".join(f"{s['stage']} {s['state'] or '-'}" for s in status["stages"])
        self.emit(status, f"{experiment.name} round {round_.number}: {round_.state} ({stages})")
        return done

    def act(self, experiment: Experiment, number: int | None) -> bool:
        """Do something to the experiment; False when there was nothing to do.

        Raises InputError when it may not be done.
        """
        return True

    @staticmethod
    def round_of(experiment: Experiment, number: int | None) -> Round:
        """Round ``number``, by default the latest. Raises InputError when there is none."""
        rounds = experiment.rounds.order_by("-number")
        found = rounds.first() if number is None else rounds.filter(number=number).first()
        if found is None:
            latest = rounds.first()
            has = f"begins with round_start {experiment.name}"
            if latest is not None:
                has = f"has rounds 0 to {latest.number}"
            raise InputError(
                "no such round", field="--round", value=number, remedy=f"{experiment.name} {has}"
            )
        return found

    def require_latest(self, experiment: Experiment, number: int | None) -> None:
        """Refuse to act on a round that is not the latest."""
        latest = self.round_of(experiment, None)
        if number is not None and number != latest.number:
            raise InputError(
                f"only the latest round, {latest.number}, can be acted on",
                field="round",
                value=number,
            )
