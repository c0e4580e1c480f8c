"""What several stages share: the configurations of evaluations, and their figures."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from intraskill_web.experiments.models import Round
from jobs.layout import Command, Part, RoundPlan
from jobs.mirror import evaluations
from trainer.config import EvaluateConfig, PolicyConfig, SkillsConfig, TaskConfig
from trainer.engines.endpoint.settings import EndpointSettings
from trainer.engines.slime.exports import EXPORT
from trainer.engines.slime.serving import ServingSettings

Arm = Literal["bare", "full"]
ARMS: tuple[Arm, ...] = ("bare", "full")


def policy(plan: RoundPlan, checkpoint: Path) -> PolicyConfig:
    """How ``checkpoint`` acts in this experiment."""
    slime = plan.config.slime
    return PolicyConfig(
        engine="local" if slime is None else "endpoint",
        checkpoint=plan.from_config(_weights(plan, checkpoint)),
        endpoint=None if slime is None else served_as(slime.serving),
        temperature=plan.config.temperature,
        max_new_tokens=plan.config.max_new_tokens,
        threads=plan.config.threads,
    )


def served_as(serving: ServingSettings) -> EndpointSettings:
    """How the server of an export is asked."""
    return EndpointSettings(
        base_url=serving.base_url,
        model=serving.served_name,
        concurrency=serving.concurrency,
        timeout_seconds=serving.timeout_seconds,
        extra_body=serving.extra_body,
    )


def program(plan: RoundPlan, checkpoint: Path, stage: str) -> tuple[str, ...]:
    """What runs a trainer's command in which ``checkpoint`` acts: nothing else, or its server."""
    if plan.config.slime is None:
        return ()
    serving = plan.config.slime.serving
    return (
        *("-m", "jobs.launchers.with_server", "--export", str(_weights(plan, checkpoint))),
        *("--state", str(plan.folder / "serving" / stage / "server.json")),
        *("--served-name", serving.served_name, "--port", str(serving.port)),
        *("--tp-size", str(serving.tp_size), "--dp-size", str(serving.dp_size)),
        *("--mem-fraction", str(serving.mem_fraction), "--python", serving.python),
        *("--tool-call-parser", serving.tool_call_parser),
        *("--reasoning-parser", serving.reasoning_parser or ""),
        *(f"--extra={word}" for word in serving.extra),
        *("--", sys.executable, "-m", "trainer"),
    )


def _weights(plan: RoundPlan, checkpoint: Path) -> Path:
    return checkpoint if plan.config.slime is None else checkpoint / EXPORT


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
    return Command("evaluate", ("evaluate", "run"), parts, program(plan, checkpoint, folder.name))


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
