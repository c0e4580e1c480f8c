"""What several stages share: the configurations of evaluations, and their figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from intraskill_web.experiments.models import Round
from jobs.layout import Command, Part, RoundPlan
from jobs.mirror import evaluations
from trainer.config import EvaluateConfig, PolicyConfig, SkillsConfig, TaskConfig

Arm = Literal["bare", "full"]
ARMS: tuple[Arm, ...] = ("bare", "full")


def policy(plan: RoundPlan, checkpoint: Path) -> PolicyConfig:
    """How ``checkpoint`` acts in this experiment."""
    return PolicyConfig(
        checkpoint=plan.from_config(checkpoint),
        temperature=plan.config.temperature,
        max_new_tokens=plan.config.max_new_tokens,
        threads=plan.config.threads,
    )


def evaluation(
    plan: RoundPlan, folder: Path, *, checkpoint: Path, split: str, tasks: Mapping[Arm, int | None]
) -> Command:
    """One command that evaluates both arms under ``folder``, each on its first ``tasks``.

    The arms share seeds, so their episodes are paired.
    """
    parts = tuple(
        Part(
            key=arm,
            folder=folder / arm,
            expected=tasks[arm] or 0,
            config=EvaluateConfig(
                stage="evaluate",
                name=f"{plan.round_id}-{folder.name}-{arm}",
                output_dir=plan.from_config(folder / arm),
                seed=plan.config.seed,
                world=plan.config.world,
                policy=policy(plan, checkpoint),
                tasks=TaskConfig(split=split, limit=tasks[arm]),
                skills=_skills(plan, arm),
                batch_size=plan.config.evaluation.batch_size,
            ),
        )
        for arm in ARMS
    )
    return Command("evaluate", ("evaluate", "run"), parts)


def _skills(plan: RoundPlan, arm: Arm) -> SkillsConfig:
    if arm == "bare":
        return SkillsConfig()
    return SkillsConfig(provider="bank", bank=plan.from_config(plan.bank))


def summaries(folder: Path) -> tuple[Path, ...]:
    """What an evaluation of both arms yields."""
    return tuple(folder / arm / "summary.json" for arm in ARMS)


def scores(round_: Round, plan: RoundPlan, folder: Path, *, step: int) -> dict[str, Any]:
    """Publish the scores of both arms under ``folder`` and return their figures."""
    figures: dict[str, Any] = {}
    for arm in ARMS:
        score = evaluations.record_score(round_, plan.run, folder / arm, step=step, arm=arm)
        figures |= {
            f"{arm}_n": score.n,
            f"{arm}_success": score.success,
            f"{arm}_reward": score.reward,
        }
    return figures
