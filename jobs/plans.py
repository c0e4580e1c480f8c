"""From rows to the plan of a round."""

from __future__ import annotations

from intraskill_web.experiments.models import Round
from jobs.layout import RoundPlan, read_experiment


def plan_of(round_: Round) -> RoundPlan:
    """The plan of a round; its settings are read from the frozen file, which wins over the row."""
    run = round_.experiment.folder
    return RoundPlan(
        config=read_experiment(run),
        run=run,
        number=round_.number,
        rounds=round_.experiment.rounds_planned,
    )
