"""``manage.py round_start NAME``: begin the next round."""

from __future__ import annotations

from intraskill_web.experiments.models import Experiment
from intraskill_web.experiments.round_command import RoundCommand
from intraskill_web.experiments.services import start_round


class Command(RoundCommand):
    help = __doc__ or ""

    def act(self, experiment: Experiment, number: int | None) -> None:
        """Start."""
        start_round(experiment, number)
