"""``manage.py round_stop NAME``: stop what runs; it can be resumed to the same result."""

from __future__ import annotations

from intraskill_web.experiments.models import Experiment
from intraskill_web.experiments.queries import require_latest
from intraskill_web.experiments.round_command import RoundCommand
from intraskill_web.experiments.services import stop_round


class Command(RoundCommand):
    help = __doc__ or ""

    def act(self, experiment: Experiment, number: int | None) -> bool:
        """Stop; where nothing runs that is said, as the JSON action refuses it."""
        require_latest(experiment, number)
        stopped = stop_round(experiment)
        if not stopped:
            self.note("incomplete: nothing is running")
        return stopped
