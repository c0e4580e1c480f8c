"""A round's stages: their order, what each needs, runs and yields. The one place that knows.

Needs are checked before anything is spent; a stage counts as done only when everything it yields
exists and its rows are published.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intraskill_web.experiments.models import Stage
from intraskill_web.experiments.states import STAGE_ORDER
from jobs.layout import Command, RoundPlan
from jobs.stages import analyse, freeze, gate, select, train, validate


@dataclass(frozen=True, slots=True)
class StageSpec:
    """One kind of stage.

    ``prepare`` makes small inputs (idempotent); ``publish`` writes rows from the finished files,
    runs inside the transaction that ends the stage and returns the stage's outcome. ``without`` is
    the plan of a stage that is left out: what follows needs the files that it makes.
    """

    kind: str
    needs: Callable[[RoundPlan], tuple[Path, ...]]
    commands: Callable[[RoundPlan], tuple[Command, ...]]
    yields: Callable[[RoundPlan], tuple[Path, ...]]
    publish: Callable[[Stage, RoundPlan], dict[str, Any]]
    prepare: Callable[[RoundPlan], None] = lambda _plan: None
    without: Callable[[RoundPlan], RoundPlan] = lambda plan: plan


PIPELINE: dict[str, StageSpec] = {
    spec.kind: spec
    for spec in (
        StageSpec(
            "freeze",
            freeze.needs,
            freeze.commands,
            freeze.yields,
            freeze.publish,
            freeze.prepare,
        ),
        StageSpec("train", train.needs, train.commands, train.yields, train.publish, train.prepare),
        StageSpec(
            "analyse",
            analyse.needs,
            analyse.commands,
            analyse.yields,
            analyse.publish,
            without=analyse.without,
        ),
        StageSpec("validate", validate.needs, validate.commands, validate.yields, validate.publish),
        StageSpec(
            "gate",
            gate.needs,
            gate.commands,
            gate.yields,
            gate.publish,
            gate.prepare,
            without=gate.without,
        ),
        StageSpec(
            "select",
            select.needs,
            select.commands,
            select.yields,
            select.publish,
            without=select.without,
        ),
    )
}
if tuple(PIPELINE) != STAGE_ORDER:
    raise RuntimeError(f"stages run as {tuple(PIPELINE)} but rows know {STAGE_ORDER}")


def missing(paths: tuple[Path, ...]) -> list[Path]:
    """Those of ``paths`` that do not exist."""
    return [path for path in paths if not path.exists()]
