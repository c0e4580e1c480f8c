"""What an evaluation order found, an arm a line, from the summaries that it wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from intraskill_web.monitoring.statistics import wilson
from intraskill_web.reports.models import EvaluationOrder
from trainer.errors import InputError
from trainer.files import read_json


@dataclass(frozen=True, slots=True)
class ArmResult:
    """One arm: what was played and, once it is whole, success, reward and scored episodes."""

    arm: Mapping[str, Any]
    n: int = 0
    success: float | None = None
    reward: float | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's at 95 %; None before the arm is whole."""
        return None if self.success is None else wilson(round(self.success * self.n), self.n)

    def data(self) -> dict[str, Any]:
        """For the JSON twin."""
        return {"arm": self.arm["name"], "n": self.n, "success": self.success,
                "interval": self.interval, "reward": self.reward}  # fmt: skip


def results(order: EvaluationOrder) -> list[ArmResult]:
    """The arms in their order; a file that is missing or broken leaves an arm without figures."""
    return [_result(order, arm) for arm in order.arms]


def _result(order: EvaluationOrder, arm: Mapping[str, Any]) -> ArmResult:
    if order.state != "succeeded":
        return ArmResult(arm)
    try:
        summary = read_json(order.folder / arm["name"] / "summary.json")
        found, n = summary["primary"], int(summary["counts"]["scored"])
        return (
            ArmResult(arm, n, found["success_rate"], found["reward_mean"]) if n else ArmResult(arm)
        )
    except (InputError, KeyError, TypeError, ValueError):
        return ArmResult(arm)
