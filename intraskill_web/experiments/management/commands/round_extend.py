"""``manage.py round_extend NAME N``: how many rounds are planned in all."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from intraskill_web.core.commands import JsonCommand, experiment_named
from intraskill_web.experiments.plan_buttons import test_again
from intraskill_web.experiments.planning import set_rounds_planned
from jobs.transitions import RoundState


class Command(JsonCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("name", help="the experiment")
        parser.add_argument("rounds", type=int, help="how many in all, those that began included")
        parser.add_argument(
            "--reason", default="", help="why, where the test split is played again"
        )

    def run(self, **options: Any) -> bool:
        """Plan, and print what is planned and how many rounds have begun."""
        experiment, rounds = experiment_named(options["name"]), options["rounds"]
        last = experiment.rounds.order_by("-number").first()
        again = test_again(experiment, last, list(last.stages.all()) if last else [])
        set_rounds_planned(experiment, rounds, reason=options["reason"])
        if last and again and rounds > last.number + 1:
            self.note(f"warning: {again}")
        begun = experiment.rounds.count()
        told = f"{experiment.name}: rounds planned {rounds}, begun {begun}"
        if begun < rounds and experiment.state not in (RoundState.RUNNING, RoundState.STOPPING):
            told += f"; the next begins with round_start {experiment.name}"
        self.emit(
            {
                "experiment": experiment.name,
                "rounds_planned": rounds,
                "rounds_begun": begun,
                "state": experiment.state,
            },
            told,
        )
        return True
