"""Settings: one frozen value for each command (``train``, ``evaluate``, ``analyst``).

Those of a whole experiment stand in ``experiment_config``; ``config_files`` reads both. Defaults
are those of training.md §4.2, §6 and of the embedded policy.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from trainer.analyst.settings import AnalystSettings
from trainer.config_base import Config, ConfigPath, Count, Name, Positive, Probability
from trainer.engines.endpoint.settings import EndpointSettings
from trainer.skills import curriculum_build
from trainer.skills.curriculum_settings import CurriculumSettings

__all__ = [  # for all settings
    "Config",
    "ConfigPath",
    "Count",
    "CurriculumSettings",
    "Name",
    "Positive",
    "Probability",
]

DEFAULT_SEED = 20260830
DEFAULT_MASK_SEED = curriculum_build.DEFAULT_SEED
GateProfile = Literal["published", "standard"]
DEFAULT_GATE_PROFILE: GateProfile = "standard"  # the one that can tell (docs/design/gate.md)


class WorldConfig(Config):
    """Which shop: a profile and, unless the profile generates one, its catalogue and split file."""

    profile: str = "mini"
    catalogue: ConfigPath | None = None
    splits: ConfigPath | None = None


class PolicyConfig(Config):
    """Which checkpoint acts, and how it samples.

    With engine ``endpoint`` a server named in ``endpoint`` acts, and ``checkpoint`` is the exported
    folder whose weights it serves. ``threads`` null lets the engine time itself once at the start;
    what it chose is recorded and used again on resume, because the thread count may change the last
    bits of a sum.
    """

    engine: Literal["local", "endpoint"] = "local"
    checkpoint: ConfigPath
    endpoint: EndpointSettings | None = None
    temperature: Positive = 1.0
    max_new_tokens: Count = 7
    threads: Count | None = None

    @model_validator(mode="after")
    def _a_server_is_named(self) -> PolicyConfig:
        if (self.engine == "endpoint") != (self.endpoint is not None):
            raise ValueError("endpoint must be set exactly when the engine is 'endpoint'")
        return self


class RolloutConfig(Config):
    """One step's groups (training.md §4.8): waves, target, retry, failure limits."""

    groups_per_wave: Count = 32
    groups_kept: Count = 16
    episodes_per_group: Annotated[int, Field(ge=2)] = 8
    max_turns: Count | None = None
    full_skill_retry: bool = True
    max_consecutive_failed_groups: Count = 8
    batch_size: Count = 256

    @model_validator(mode="after")
    def _a_wave_can_fill_the_target(self) -> RolloutConfig:
        if self.groups_per_wave < self.groups_kept:
            raise ValueError("groups_per_wave must be at least groups_kept")
        return self


class OptimiserConfig(Config):
    """The update: AdamW with the clipped token-level loss (training.md §6.2)."""

    learning_rate: Positive = 5e-5
    updates_per_step: Count = 2
    std_normalisation: bool = False
    clip_low: Positive = 0.2
    clip_high: Positive = 0.28
    betas: tuple[Probability, Probability] = (0.9, 0.95)
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    warmup_updates: Annotated[int, Field(ge=0)] = 5
    gradient_clip: Positive = 1.0
    micro_batch: Count = 32


class TrainConfig(Config):
    """``python -m trainer train CONFIG``: one round of training on one frozen curriculum."""

    stage: Literal["train"]
    name: Name
    round_id: Name
    output_dir: ConfigPath
    seed: int = DEFAULT_SEED
    world: WorldConfig = WorldConfig()
    policy: PolicyConfig
    skillbank: ConfigPath
    curriculum: ConfigPath
    task_data: ConfigPath | None = None
    steps: Count = 20
    rollout: RolloutConfig = RolloutConfig()
    optimiser: OptimiserConfig = OptimiserConfig()

    @model_validator(mode="after")
    def _updates_split_whole_groups(self) -> TrainConfig:
        if self.rollout.groups_kept % self.optimiser.updates_per_step:
            raise ValueError(
                "rollout.groups_kept must be a multiple of optimiser.updates_per_step, "
                "because a group may not straddle two updates"
            )
        return self


class TaskConfig(Config):
    """Which tasks of which split: all, the first ``limit``, a drawn subset, or those named."""

    split: str = "val"
    limit: Count | None = None
    sample_size: Count | None = None
    ids: tuple[int, ...] | None = None
    repeats: Count = 1

    @model_validator(mode="after")
    def _one_way_to_choose(self) -> TaskConfig:
        if self.limit is not None and self.sample_size is not None:
            raise ValueError("set limit or sample_size, not both")
        if self.ids is not None and (self.limit or self.sample_size):
            raise ValueError("set ids alone, without limit or sample_size")
        return self


class SkillsConfig(Config):
    """Which chunks an evaluation shows: none, a whole bank, or those assigned to each episode."""

    provider: Literal["none", "bank", "assigned"] = "none"
    bank: ConfigPath | None = None
    assignment: ConfigPath | None = None
    max_skills: Count | None = None

    @model_validator(mode="after")
    def _files_fit_the_provider(self) -> SkillsConfig:
        if (self.bank is None) == (self.provider != "none"):
            raise ValueError("bank must be set exactly when the provider is not 'none'")
        if (self.assignment is None) == (self.provider == "assigned"):
            raise ValueError("assignment must be set exactly when the provider is 'assigned'")
        return self


class EvaluateConfig(Config):
    """``python -m trainer evaluate plan|run|summarize CONFIG``."""

    stage: Literal["evaluate"]
    name: Name
    output_dir: ConfigPath
    seed: int = DEFAULT_SEED
    world: WorldConfig = WorldConfig()
    policy: PolicyConfig
    tasks: TaskConfig = TaskConfig()
    skills: SkillsConfig = SkillsConfig()
    max_turns: Count | None = None
    batch_size: Annotated[int, Field(ge=1, le=1024)] = 256
    attempts: Count = 3
    record_tokens: bool = False


class AnalystConfig(Config):
    """``python -m trainer analyst watch|run CONFIG``: from a round's triage to a candidate pool.

    ``policy`` is the checkpoint that the usefulness probe plays with; without the probe it may be
    left out.
    """

    stage: Literal["analyse"]
    name: Name
    round_id: Name
    output_dir: ConfigPath
    training_dir: ConfigPath
    skillbank: ConfigPath
    ledger_history: ConfigPath | None = None
    proposal_checkpoint: str
    seed: int = DEFAULT_SEED
    world: WorldConfig = WorldConfig()
    policy: PolicyConfig | None = None
    analyst: AnalystSettings = AnalystSettings()

    @model_validator(mode="before")
    @classmethod
    def _the_former_place_of_max_candidates(cls, value: Any) -> Any:
        if isinstance(value, dict) and "max_candidates" in value:
            rest = {key: item for key, item in value.items() if key != "max_candidates"}
            limit = {"max_candidates": value["max_candidates"]}
            return {**rest, "analyst": {"kind": value.get("analyst", "none"), **limit}}
        return value

    @model_validator(mode="after")
    def _a_probe_has_a_policy(self) -> AnalystConfig:
        if self.analyst.probe.enabled and self.policy is None:
            raise ValueError("analyst.probe needs policy: the checkpoint to play with")
        return self
