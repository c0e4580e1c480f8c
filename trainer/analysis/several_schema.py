"""The document of several runs side by side."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from trainer.analysis.schema_outcomes import Contrast
from trainer.analysis.schema_values import Figure, Interval, Record

SCHEMA = "intraskill-comparison-of-runs-v1"


class RunRow(Record):
    """One run: its arm and the figures of its conditions, by split, condition and metric."""

    name: str
    arm: str
    seed: int | None
    rounds: int
    final_chunks: int | None
    figures: dict[str, Figure]


class ArmRow(Record):
    """One metric of one arm over its runs; ``sd`` and ``interval`` need two runs."""

    arm: str
    figure: str
    runs: list[str]
    n: int
    mean: float
    sd: float | None
    interval: Interval | None
    least: float
    most: float


class SeedPair(Record):
    """Arm b minus arm a over the seeds that both have."""

    a: str
    b: str
    figure: str
    seeds: list[int]
    n: int
    difference: float
    sd: float
    interval: Interval
    p: float
    p_holm: float


class RunPair(Record):
    """Run b minus run a on the tasks that both played in one condition; p of reward and success."""

    condition: str
    contrast: Contrast
    p_holm: dict[str, float]


class Comparison(Record):
    """The whole document. ``settings`` are by arm; arms differ in ``differing``."""

    schema_version: str = Field(default=SCHEMA)
    runs: list[RunRow]
    arms: list[ArmRow]
    seed_pairs: list[SeedPair]
    run_pairs: list[RunPair]
    settings: dict[str, dict[str, Any]]
    differing: dict[str, dict[str, Any]]
