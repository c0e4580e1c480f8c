"""``manage.py round_start NAME``: begin the next round, with ``--host H`` on that host only."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from intraskill_web.core.commands import experiment_named
from intraskill_web.experiments.models import Experiment
from intraskill_web.experiments.planning import pin_host
from intraskill_web.experiments.round_command import RoundCommand
from intraskill_web.experiments.services import start_round


class Command(RoundCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--host", help="run on this host only; empty: on any (default: as is)")

    def run(self, **options: Any) -> bool:
        """Pin the experiment where that is asked for, then start."""
        if options["host"] is not None:
            pin_host(experiment_named(options["name"]), options["host"])
        return super().run(**options)

    def act(self, experiment: Experiment, number: int | None) -> bool:
        """Start."""
        start_round(experiment, number)
        return True
