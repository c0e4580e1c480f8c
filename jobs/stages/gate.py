"""Gate: masked episodes beside the bare ones, the coefficient of each chunk, the next bank."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from intraskill_web.experiments.models import Stage
from intraskill_web.gates.publish import gate_outcome, publish_gate
from intraskill_web.ledger.publish import publish_results, publish_untested
from jobs.layout import Command, Part, RoundPlan
from jobs.stages.analyse import pool
from jobs.stages.common import policy, program
from trainer.files import write_bytes, write_json
from trainer.gate.config import GateConfig
from trainer.gate.pool import load_pool
from trainer.gate.untested import accepted
from trainer.skills.bank import load_bank


def folder(plan: RoundPlan) -> Path:
    """Where the gate works."""
    return plan.folder / "gate"


def needs(plan: RoundPlan) -> tuple[Path, ...]:
    """The pool, the bare run and the checkpoint that made it; without a test the pool alone."""
    if plan.config.gate.mode != "test":
        return (pool(plan),)
    return (
        pool(plan),
        plan.folder / "validate" / "bare" / "summary.json",
        plan.checkpoint / "checkpoint.json",
    )


def prepare(plan: RoundPlan) -> None:
    """Where nothing is tested, the next bank is this one, or this one with the whole pool."""
    settings = plan.config.gate
    if settings.mode == "keep":
        write_bytes(plan.selected_bank, plan.bank.read_bytes())
    elif settings.mode == "accept" and pool(plan).exists():
        bank, found = load_bank(plan.bank), load_pool(pool(plan))
        write_json(plan.selected_bank, accepted(found, bank, budget=settings.active_skill_budget))


def commands(plan: RoundPlan) -> tuple[Command, ...]:
    """One command: ``gate run``; none where nothing is tested."""
    settings = plan.config.gate
    if settings.mode != "test":
        return ()
    tasks = settings.tasks or plan.config.evaluation.bare_tasks
    config = GateConfig(
        stage="gate",
        name=f"{plan.round_id}-gate",
        output_dir=plan.from_config(folder(plan)),
        candidate_pool=plan.from_config(pool(plan)),
        bare_run=plan.from_config(plan.folder / "validate" / "bare"),
        world=plan.config.world,
        policy=policy(plan, plan.checkpoint),
        seed=plan.config.seed,
        mask_seed=plan.config.mask_seed,
        tasks=tasks,
        batch_size=plan.config.evaluation.batch_size,
        active_skill_budget=settings.active_skill_budget,
        min_coverage=settings.min_coverage,
        profile=settings.profile,
        standard=settings.standard,
    )
    expected = config.rollouts(tasks) if tasks else 0
    part = Part("gate", folder(plan), config, expected)
    return (Command("gate", ("gate", "run"), (part,), program(plan, plan.checkpoint, "gate")),)


def yields(plan: RoundPlan) -> tuple[Path, ...]:
    """Contributions with their inference, the selected bank and the gate's manifest."""
    if plan.config.gate.mode != "test":
        return (plan.selected_bank,)
    return (
        folder(plan) / "contributions.json",
        folder(plan) / "inference.json",
        plan.selected_bank,
        folder(plan) / "online_gate_manifest.json",
    )


def without(plan: RoundPlan) -> RoundPlan:
    """The stage without a gate: the bank as it was."""
    settings = plan.config.gate.model_copy(update={"mode": "keep"})
    return replace(plan, config=plan.config.model_copy(update={"gate": settings}))


def publish(stage: Stage, plan: RoundPlan) -> dict[str, Any]:
    """Rows of the gate and its contributions; candidates learn what became of them."""
    if plan.config.gate.mode != "test":
        return publish_untested(stage.round, plan.selected_bank) | {"mode": plan.config.gate.mode}
    gate = publish_gate(stage.round, folder(plan), run=plan.run)
    publish_results(gate)
    return gate_outcome(gate)
