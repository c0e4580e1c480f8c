"""Analyse: from the round's failed groups to a candidate pool."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from intraskill_web.experiments.models import Stage
from intraskill_web.ledger.publish import publish_candidates
from jobs.layout import Command, Part, RoundPlan
from jobs.stages.common import policy, program
from trainer.analyst.settings import AnalystSettings
from trainer.config import AnalystConfig
from trainer.files import read_json


def folder(plan: RoundPlan) -> Path:
    """Where the analyst works."""
    return plan.folder / "analysis"


def pool(plan: RoundPlan) -> Path:
    """The frozen candidate pool."""
    return folder(plan) / "candidate_pool.json"


def needs(plan: RoundPlan) -> tuple[Path, ...]:
    """What training left behind, and the bank that the candidates would change."""
    return (plan.folder / "train" / "groups.jsonl", plan.bank)


def config(plan: RoundPlan) -> AnalystConfig:
    """How this round is analysed, while it trains or afterwards."""
    settings = plan.config.analyst
    return AnalystConfig(
        stage="analyse",
        name=f"{plan.round_id}-analysis",
        round_id=plan.round_id,
        output_dir=plan.from_config(folder(plan)),
        training_dir=plan.from_config(plan.folder / "train"),
        skillbank=plan.from_config(plan.bank),
        ledger_history=_history(plan),
        proposal_checkpoint=f"{plan.round_id}-checkpoint",
        seed=plan.config.seed,
        world=plan.config.world,
        policy=policy(plan, plan.checkpoint) if settings.probe.enabled else None,
        analyst=settings,
    )


def commands(plan: RoundPlan) -> tuple[Command, ...]:
    """One command: ``analyst run``."""
    part = Part("analyse", folder(plan), config(plan))
    probed = plan.config.analyst.probe.enabled
    server = program(plan, plan.checkpoint, "analyse") if probed else ()
    return (Command("analyse", ("analyst", "run"), (part,), server),)


def _history(plan: RoundPlan) -> Path | None:
    """The latest ledger before this round: of a gate, else of an analysis. None is ever lost."""
    name = "proposal_ledger.jsonl"
    earlier = plan.previous
    while earlier is not None:
        for candidate in (earlier.folder / "gate" / name, folder(earlier) / name):
            if candidate.exists():
                return plan.from_config(candidate)
        earlier = earlier.previous
    return None


def yields(plan: RoundPlan) -> tuple[Path, ...]:
    """The pool and what it was made from."""
    return (pool(plan), folder(plan) / "analysis_summary.json")


def without(plan: RoundPlan) -> RoundPlan:
    """The stage without an analyst: a pool of the bank as it is, and no candidates."""
    config = plan.config.model_copy(update={"analyst": AnalystSettings(kind="none")})
    return replace(plan, config=config)


def publish(stage: Stage, plan: RoundPlan) -> dict[str, Any]:
    """Rows of the candidates; the outcome is the summary's counts, also by trigger, and whether all
    went well."""
    publish_candidates(stage.round, pool(plan))
    summary = read_json(folder(plan) / "analysis_summary.json")
    outcome: dict[str, Any] = {
        key: value for key, value in summary.items() if isinstance(value, int | float)
    }
    if triggers := summary.get("triggers"):
        outcome["triggers"] = triggers
    chat = plan.config.analyst.endpoint
    if chat is not None:  # else nobody sends a bill
        cost = summary.get("accounting", {}).get("cost", 0.0)
        outcome |= {"cost": cost, "currency": chat.prices.currency}
    if error := summary.get("error"):
        outcome |= {"status": summary["status"], "error": error["message"]}
    return outcome
