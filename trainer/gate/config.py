"""Settings of ``python -m trainer gate run CONFIG``.

Everything that decides a result stands here and is echoed in the gate's manifest. Specification:
gate-analysis.md §§4, 8; ``min_coverage`` settles what the published documents and code disagree on.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from trainer.config import (
    DEFAULT_GATE_PROFILE,
    DEFAULT_MASK_SEED,
    DEFAULT_SEED,
    Config,
    ConfigPath,
    Count,
    GateProfile,
    Name,
    PolicyConfig,
    Probability,
    WorldConfig,
)
from trainer.gate.standard.settings import ARMS, MASKED_PER_TASK, StandardSettings


class PlayConfig(Config):
    """What every gate has. ``tasks`` null means the whole split; below ``min_coverage`` nothing is
    selected."""

    name: Name
    output_dir: ConfigPath
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
    min_coverage: Probability = 1.0


class GateConfig(PlayConfig):
    """The gate of a round: what is judged is its candidate pool."""

    stage: Literal["gate"]
    candidate_pool: ConfigPath
    active_skill_budget: Count = 10
    profile: GateProfile = DEFAULT_GATE_PROFILE
    standard: StandardSettings = StandardSettings()

    def rollouts(self, tasks: int) -> int:
        """How many rollouts a gate of this many tasks plays at most, its confirmation included."""
        if self.profile == "published":
            return tasks
        aside = self.standard.confirm_tasks
        return MASKED_PER_TASK * (tasks - aside) + len(ARMS) * aside


class ColdStartGateConfig(PlayConfig):
    """The gate of a draft (``analyst cold-start``): what is judged is every chunk of it.

    ``draft_bank`` is the draft as a bank; ``draft``, where there is one, is checked against it.
    ``active_skill_budget`` null takes the draft's; both places must agree.
    """

    stage: Literal["cold_start_gate"]
    draft_bank: ConfigPath
    draft: ConfigPath | None = None
    active_skill_budget: Count | None = None
    profile: Literal["published"] = "published"
