"""Select: the gate's bank becomes S_{t+1}; after the last round the test split is played once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from intraskill_web.experiments.models import Stage
from intraskill_web.skills.publish import publish_bank
from jobs.layout import Command, RoundPlan
from jobs.stages.common import evaluation, scores, summaries


def needs(plan: RoundPlan) -> tuple[Path, ...]:
    """The bank that the gate selected, and the checkpoint for the test."""
    return (plan.selected_bank, plan.checkpoint / "checkpoint.json")


def commands(plan: RoundPlan) -> tuple[Command, ...]:
    """Nothing, except in the last round: both arms on the test split."""
    if not plan.ends_with_test:
        return ()
    tasks = plan.config.evaluation.test_tasks
    return (
        evaluation(
            plan,
            plan.folder / "test",
            checkpoint=plan.checkpoint,
            split="test",
            tasks={"bare": tasks, "full": tasks},
        ),
    )


def yields(plan: RoundPlan) -> tuple[Path, ...]:
    """The summaries of the test, if there was one."""
    return summaries(plan.folder / "test") if plan.ends_with_test else ()


def without(plan: RoundPlan) -> RoundPlan:
    """The stage without the test."""
    return replace(plan, plays_test=False)


def publish(stage: Stage, plan: RoundPlan) -> dict[str, Any]:
    """Rows of the next skill version and, in the last round, of the test."""
    round_ = stage.round
    version = publish_bank(
        round_.experiment, plan.selected_bank, number=plan.number + 1, from_round=round_
    )
    outcome: dict[str, Any] = {
        "label": version.label,
        "bank_sha256": version.bank_sha256,
        "bank_size": version.entries.count(),
        "next_round": None if plan.is_last else plan.number + 1,
    }
    if plan.ends_with_test:
        outcome["test"] = scores(round_, plan, plan.folder / "test", step=plan.last_step)
    return outcome
