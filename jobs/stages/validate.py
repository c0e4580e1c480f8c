"""Validate: the round's checkpoint without any skill, and with all of S_t."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from intraskill_web.experiments.models import Stage
from jobs.layout import Command, RoundPlan
from jobs.stages.common import evaluation, scores, summaries


def needs(plan: RoundPlan) -> tuple[Path, ...]:
    """The round's checkpoint and bank."""
    return (plan.checkpoint / "checkpoint.json", plan.bank)


def commands(plan: RoundPlan) -> tuple[Command, ...]:
    """Both arms; the gate reuses the bare one."""
    sizes = plan.config.evaluation
    return (
        evaluation(
            plan,
            plan.folder / "validate",
            checkpoint=plan.checkpoint,
            split="val",
            tasks={"bare": sizes.bare_tasks, "full": sizes.full_tasks},
        ),
    )


def yields(plan: RoundPlan) -> tuple[Path, ...]:
    """The summaries of both arms."""
    return summaries(plan.folder / "validate")


def publish(stage: Stage, plan: RoundPlan) -> dict[str, Any]:
    """The checkpoint's scores."""
    return scores(stage.round, plan, plan.folder / "validate", step=plan.last_step)
