"""``manage.py round_resume NAME``: go on where the experiment was stopped or failed."""

from __future__ import annotations

from intraskill_web.experiments.models import Experiment
from intraskill_web.experiments.queries import require_latest
from intraskill_web.experiments.round_command import RoundCommand
from intraskill_web.experiments.services import resume_round


class Command(RoundCommand):
    help = __doc__ or ""

    def act(self, experiment: Experiment, number: int | None) -> bool:
        """Resume."""
        require_latest(experiment, number)
        resume_round(experiment)
        return True
