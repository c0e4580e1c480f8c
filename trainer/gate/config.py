"""Settings of ``python -m trainer gate run CONFIG``.

Everything that decides a result stands here and is echoed in the gate's manifest. Specification:
gate-analysis.md §§4, 8; ``min_coverage`` settles what the published documents and code disagree on.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from trainer.config import (
    DEFAULT_MASK_SEED,
    DEFAULT_SEED,
    Config,
    ConfigPath,
    Count,
    Name,
    PolicyConfig,
    Probability,
    WorldConfig,
)
from trainer.gate.standard.settings import ARMS, MASKED_PER_TASK, StandardSettings


class GateConfig(Config):
    """One gate. ``tasks`` null means the whole split; below ``min_coverage`` nothing is
    selected."""

    stage: Literal["gate"]
    name: Name
    output_dir: ConfigPath
    candidate_pool: ConfigPath
    bare_run: ConfigPath
    world: WorldConfig = WorldConfig()
    policy: PolicyConfig
    seed: int = DEFAULT_SEED
    mask_seed: int = DEFAULT_MASK_SEED
    split: Literal["val"] = "val"
    tasks: Count | None = None
    max_turns: Count | None = None
    batch_size: Annotated[int, Field(ge=1, le=1024)] = 256
    attempts: Count = 3
    active_skill_budget: Count = 10
    min_coverage: Probability = 1.0
    profile: Literal["published", "standard"] = "published"
    standard: StandardSettings = StandardSettings()

    def rollouts(self, tasks: int) -> int:
        """How many rollouts a gate of this many tasks plays at most, its confirmation included."""
        if self.profile == "published":
            return tasks
        aside = self.standard.confirm_tasks
        return MASKED_PER_TASK * (tasks - aside) + len(ARMS) * aside
