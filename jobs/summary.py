"""The summary of an experiment: figures from rows, hashes of the documents behind them."""

from __future__ import annotations

from typing import Any

from intraskill_web.experiments.models import Experiment
from intraskill_web.experiments.queries import arms, round_figures
from jobs.documents import hashes_of


def summary_of(experiment: Experiment) -> dict[str, Any]:
    """The last line of ``manage.py demo``."""
    rounds = [
        {**round_figures(round_), "hashes": hashes_of(round_)}
        for round_ in experiment.rounds.order_by("number")
    ]
    last = max((score.step for score in experiment.scores.filter(split="test")), default=None)
    return {
        "summary": True,
        "experiment": experiment.name,
        "state": experiment.state,
        "seed": experiment.seed,
        "start": arms(experiment, step=0, split="val"),
        "rounds": rounds,
        "test": None if last is None else arms(experiment, step=last, split="test"),
        "seconds": sum(figures["seconds"] or 0.0 for figures in rounds),
    }
