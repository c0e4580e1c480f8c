"""Freeze the curriculum ``(S_t, q, rho)``; in round 0 also measure the starting checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from intraskill_web.experiments.models import Stage
from intraskill_web.skills.publish import publish_bank, publish_curriculum
from jobs.layout import Command, RoundPlan
from jobs.stages.common import evaluation, scores, summaries
from trainer.files import write_bytes


def needs(plan: RoundPlan) -> tuple[Path, ...]:
    """The bank to freeze, and the checkpoint to start from."""
    return (plan.bank, plan.trained_from / "checkpoint.json")


def prepare(plan: RoundPlan) -> None:
    """Put the round's bank in place: the first one, or what the previous gate selected."""
    source = plan.previous.selected_bank if plan.previous else plan.start_bank
    if not plan.bank.exists() and source.exists():
        write_bytes(plan.bank, source.read_bytes())


def commands(plan: RoundPlan) -> tuple[Command, ...]:
    """Build and check the curriculum; in round 0 evaluate the start, bare and full."""
    settings = plan.config.curriculum
    scale = () if settings.contribution_scale is None else ("--scale", settings.contribution_scale)
    if settings.expected_chunks is not None:
        scale = ("--expected-chunks", settings.expected_chunks)
    build = Command(
        "curriculum",
        tuple(
            str(part)
            for part in (
                *("curriculum", "build", plan.bank, plan.curriculum, "--round-id", plan.round_id),
                *("--q", settings.skill_free_probability, "--seed", plan.config.mask_seed),
                *("--rho-min", settings.rho_min, "--rho-max", settings.rho_max, *scale),
                *_controller(plan),
            )
        ),
    )
    check = Command("check", ("curriculum", "check", str(plan.curriculum)))
    return (build, check, *_baseline(plan))


def _controller(plan: RoundPlan) -> tuple[object, ...]:
    """What an adaptive q follows from: the gaps of the start and of every round before this one."""
    settings = plan.config.curriculum
    if settings.controller == "fixed":
        return ()
    folders: list[Path] = []
    earlier = plan.previous
    while earlier is not None:
        folders.insert(0, earlier.folder / "validate")
        earlier = earlier.previous
    if folders:
        folders.insert(0, plan.run / "round-000" / "baseline")
    return ("--q-max", settings.q_max, "--q-step", settings.q_step, "--gaps", *folders)


def _baseline(plan: RoundPlan) -> tuple[Command, ...]:
    if plan.number:
        return ()
    tasks = plan.config.evaluation.full_tasks
    return (
        evaluation(
            plan,
            plan.folder / "baseline",
            checkpoint=plan.start_checkpoint,
            split="val",
            tasks={"bare": tasks, "full": tasks},
        ),
    )


def yields(plan: RoundPlan) -> tuple[Path, ...]:
    """The curriculum, and in round 0 the summaries of the baseline."""
    return (plan.curriculum, *(() if plan.number else summaries(plan.folder / "baseline")))


def publish(stage: Stage, plan: RoundPlan) -> dict[str, Any]:
    """Rows of the curriculum, in round 0 also of S0 and of the baseline."""
    round_ = stage.round
    if plan.number == 0:
        publish_bank(round_.experiment, plan.bank, number=0, from_round=None)
    curriculum = publish_curriculum(round_, plan.curriculum)
    outcome: dict[str, Any] = {
        "state_id": curriculum.state_id,
        "q": curriculum.q,
        "chunks": len(curriculum.chunks),
    }
    if plan.number == 0:
        outcome |= scores(round_, plan, plan.folder / "baseline", step=0)
    return outcome
