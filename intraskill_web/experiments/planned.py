"""How many episodes a stage will play, from the frozen settings. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.gate.standard.settings import ARMS, MASKED_PER_TASK


def planned_episodes(kind: str, config: Mapping[str, Any]) -> int | None:
    """Episodes of a stage of this kind; None where the settings do not say, or it plays none."""
    evaluation, train = config.get("evaluation", {}), config.get("train", {})
    if kind == "validate":
        return _sum(evaluation.get("bare_tasks"), evaluation.get("full_tasks"))
    if kind == "train":
        rollout = train.get("rollout", {})
        return _product(
            train.get("steps"), rollout.get("groups_per_wave"), rollout.get("episodes_per_group")
        )
    if kind == "gate":
        return _gate(config.get("gate", {}), evaluation.get("bare_tasks"))
    return None


def _gate(gate: Mapping[str, Any], bare_tasks: int | None) -> int | None:
    if gate.get("mode", "test") != "test":
        return 0
    tasks: int | None = gate.get("tasks") or bare_tasks
    if tasks is None or gate.get("profile") == "published":
        return tasks
    aside: int = gate.get("standard", {}).get("confirm_tasks", 0)
    return MASKED_PER_TASK * max(0, tasks - aside) + len(ARMS) * aside


def _sum(*parts: int | None) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _product(*parts: int | None) -> int | None:
    result = 1
    for part in parts:
        if part is None:
            return None
        result *= part
    return result
