"""Settings of ``python -m trainer analyst cold-start CONFIG``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from trainer.analyst.settings import AnalystSettings
from trainer.config import Config, ConfigPath, Count, Name, WorldConfig


class ColdStartConfig(Config):
    """From an evaluation of the bare policy on training tasks to a draft of the first skill.

    ``run_dir`` is the folder of that evaluation; ``traces`` null takes all of its episodes.
    ``active_skill_budget`` is how many chunks the first gate may keep.
    """

    stage: Literal["cold_start"]
    name: Name
    output_dir: ConfigPath
    run_dir: ConfigPath
    proposal_checkpoint: str = "cold-start"
    world: WorldConfig = WorldConfig()
    traces: Count | None = 400
    max_chunks: Annotated[int, Field(ge=1, le=16)] = 16
    active_skill_budget: Annotated[int, Field(ge=1, le=16)] = 10
    analyst: AnalystSettings

    @model_validator(mode="after")
    def _somebody_reads(self) -> ColdStartConfig:
        if self.analyst.kind == "none":
            raise ValueError("a cold start needs an analyst: rule_based or endpoint")
        return self
