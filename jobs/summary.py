"""The summary of an experiment: figures from rows, hashes of the documents behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from intraskill_web.core.formats import count, duration, rate
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


def told(summary: Mapping[str, Any]) -> str:
    """The summary for people: success by checkpoint, what each gate decided, the time."""
    lines = [
        f"{summary['experiment']}: {summary['state']} in {duration(summary['seconds'])}",
        f"  {'start':<8} {_arms(summary['start'])}",
    ]
    for figures in summary["rounds"]:
        name = f"round {figures['round']}"
        lines.append(f"  {name:<8} {_arms(figures)} · {_bank(figures)}")
    if summary["test"]:
        lines.append(f"  {'test':<8} {_arms(summary['test'])}")
    return "\n".join(lines)


def _arms(figures: Mapping[str, Any]) -> str:
    bare, full = figures["bare_success"], figures["full_success"]
    return f"success without the skill {rate(bare)}, with it {rate(full)}"


def _bank(figures: Mapping[str, Any]) -> str:
    """What became of the bank: sizes before and after the gate, and how many of each verdict."""
    before, after = figures["bank_size"], figures["selected_size"]
    statuses = [row["status"] for row in figures["gate"]["coefficients"].values()]
    verdicts = ", ".join(f"{n} {status}" for status, n in Counter(statuses).most_common())
    sizes = f"chunks {count(before)} → {count(after)}"
    return f"{sizes} ({verdicts})" if verdicts else sizes
