"""From rows to the plan of a round."""

from __future__ import annotations

from intraskill_web.experiments.models import Round
from jobs.layout import RoundPlan, read_experiment
from trainer.experiment_config import ExperimentConfig


def plan_of(round_: Round) -> RoundPlan:
    """The plan of a round: with its own settings, else those of the experiment's frozen file."""
    run = round_.experiment.folder
    own = ExperimentConfig.model_validate(round_.config) if round_.config else None
    return RoundPlan(
        config=own or read_experiment(run),
        run=run,
        number=round_.number,
        rounds=round_.experiment.rounds_planned,
    )
