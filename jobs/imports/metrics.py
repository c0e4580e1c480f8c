"""The tables of training steps and optimiser updates → metric points of a round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from intraskill_web.experiments.models import Round
from intraskill_web.monitoring.models import MetricPoint, UpdatePoint
from jobs.imports.folder import PublishedFolder
from jobs.imports.report import Report

STEPS = "training_steps.csv"
UPDATES = "wandb/optimizer_updates.csv"
SUCCESS = "rollout/shopsim/success_rate"
BATCH = 1000
Point = TypeVar("Point", MetricPoint, UpdatePoint)


def publish_steps(round_: Round, folder: PublishedFolder, report: Report) -> dict[str, Any]:
    """A point for every number of the round's steps; an empty cell is no point."""
    rows = folder.of_round(STEPS, round_.number)
    if not rows:
        report.absent(f"{folder.relative(folder.analysis)}/{STEPS}: round {round_.number}")
        return {}
    _publish(MetricPoint, round_, rows, ("step",))
    return {
        "steps": len(rows),
        "last_step": int(rows[-1]["step"]),
        "success_first": float(rows[0][SUCCESS]) if rows[0][SUCCESS] else None,
        "success_last": float(rows[-1][SUCCESS]) if rows[-1][SUCCESS] else None,
    }


def publish_updates(round_: Round, folder: PublishedFolder) -> dict[str, Any]:
    """A point for every number of the round's optimiser updates."""
    rows = folder.of_round(UPDATES, round_.number)
    _publish(UpdatePoint, round_, rows, ("update", "step"))
    return {"updates": len(rows)} if rows else {}


def _publish(
    model: type[Point],
    round_: Round,
    rows: Iterable[Mapping[str, str]],
    axes: Sequence[str],
) -> None:
    """A point for every number of every row; the first of ``axes`` says where it stands."""
    model._default_manager.bulk_create(
        [
            model(
                experiment=round_.experiment,
                round=round_,
                name=name,
                value=float(value),
                **{axis: int(row[axis]) for axis in axes},
            )
            for row in rows
            for name, value in row.items()
            if "/" in name and value
        ],
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["experiment", "name", axes[0]],
        update_fields=["value", "round", *axes[1:]],
    )
