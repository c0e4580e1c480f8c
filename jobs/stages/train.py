"""Train: the round's steps on the frozen curriculum."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from intraskill_web.experiments.models import Stage
from intraskill_web.monitoring.models import MetricPoint
from jobs.layout import Command, Part, RoundPlan, write_config
from jobs.stages import analyse, slime_train
from jobs.stages.common import policy
from trainer.config import TrainConfig
from trainer.files import read_json

SUCCESS = "rollout/shopsim/success_rate"


def needs(plan: RoundPlan) -> tuple[Path, ...]:
    """Curriculum, bank and the checkpoint to start from."""
    return (plan.curriculum, plan.bank, plan.trained_from / "checkpoint.json")


def watch_config(plan: RoundPlan) -> Path:
    """The configuration of the watch that makes cards beside the training."""
    return plan.config_file("train", "watch")


def prepare(plan: RoundPlan) -> None:
    """Say how to watch, where a watch is wanted; on slime, make hooks and room."""
    if plan.config.analyst.watch:
        write_config(watch_config(plan), analyse.config(plan))
    if plan.config.slime is not None:
        slime_train.prepare(plan)


def commands(plan: RoundPlan) -> tuple[Command, ...]:
    """One command: ``train``, or ``analyst beside``, which trains with a watch at its side; on
    slime a job of a Ray cluster."""
    if plan.config.slime is not None:
        return slime_train.commands(plan)
    settings = plan.config.train
    config = TrainConfig(
        stage="train",
        name=f"{plan.round_id}-train",
        round_id=plan.round_id,
        output_dir=plan.from_config(plan.folder / "train"),
        seed=plan.config.seed,
        world=plan.config.world,
        policy=policy(plan, plan.trained_from),
        skillbank=plan.from_config(plan.bank),
        curriculum=plan.from_config(plan.curriculum),
        steps=settings.steps,
        rollout=settings.rollout,
        optimiser=settings.optimiser,
    )
    part = Part("train", plan.folder / "train", config, settings.steps)
    if plan.config.analyst.watch:
        return (Command("train", ("analyst", "beside", str(watch_config(plan))), (part,)),)
    return (Command("train", ("train",), (part,)),)


def yields(plan: RoundPlan) -> tuple[Path, ...]:
    """The round's frozen checkpoint and the metrics that led to it."""
    return (plan.checkpoint / "checkpoint.json", plan.folder / "train" / "metrics.jsonl")


def publish(stage: Stage, plan: RoundPlan) -> dict[str, Any]:
    """The rows were mirrored while training; the outcome says where it began and ended."""
    points = MetricPoint.objects.filter(round=stage.round, name=SUCCESS).order_by("step")
    first, last = points.first(), points.last()
    record = read_json(plan.checkpoint / "checkpoint.json")
    return {
        "steps": plan.config.train.steps,
        "last_step": plan.last_step,
        "success_first": first.value if first else None,
        "success_last": last.value if last else None,
        "checkpoint_id": record.get("checkpoint_id"),
    }
