"""The settings of a whole experiment, from which its rounds derive their command files."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from trainer.analyst.settings import AnalystSettings
from trainer.canonical import fingerprint
from trainer.config import (
    DEFAULT_GATE_PROFILE,
    DEFAULT_MASK_SEED,
    DEFAULT_SEED,
    GateProfile,
    OptimiserConfig,
    RolloutConfig,
    WorldConfig,
)
from trainer.config_base import Config, ConfigPath, Count, Name, Positive, Probability, Seed
from trainer.engines.slime.serving import SlimeSettings
from trainer.gate.standard.settings import StandardSettings
from trainer.skills.curriculum_settings import CurriculumSettings

MOST_ROUNDS = 10_000


class StartConfig(Config):
    """Where an experiment begins: the first bank and the warm-started checkpoint."""

    skillbank: ConfigPath
    checkpoint: ConfigPath


class TrainSettings(Config):
    """What every round's training has in common."""

    steps: Count = 20
    rollout: RolloutConfig = RolloutConfig()
    optimiser: OptimiserConfig = OptimiserConfig()


class EvaluationSettings(Config):
    """Sizes of the evaluations of a round; null means the whole split."""

    bare_tasks: Count | None = None
    full_tasks: Count | None = 400
    test_tasks: Count | None = None
    batch_size: Annotated[int, Field(ge=1, le=1024)] = 256


class GateSettings(Config):
    """The gate of every round.

    ``published`` is the rule of the published experiment, ``standard`` the one that can tell
    (docs/design/gate.md). ``tasks`` are the first tasks of the validation split that
    are played under masks; null means those of the bare evaluation, and the published profile
    allows nothing else, because it pairs every masked rollout with a bare one. A gate of which less
    than ``min_coverage`` of all pairs is complete selects nothing. ``standard`` holds the
    thresholds of the standard profile.

    For ablations ``mode`` puts something else in the gate's place: ``keep`` leaves the bank as it
    was, ``accept`` takes every candidate in untested.
    """

    mode: Literal["test", "keep", "accept"] = "test"
    profile: GateProfile = DEFAULT_GATE_PROFILE
    active_skill_budget: Count = 10
    tasks: Count | None = None
    min_coverage: Probability = 1.0
    standard: StandardSettings = StandardSettings()

    @model_validator(mode="after")
    def _only_the_standard_gate_chooses_its_tasks(self) -> GateSettings:
        if self.profile == "published" and self.tasks is not None:
            raise ValueError(
                "tasks must be null in the published profile: it plays the tasks of the bare "
                "evaluation (evaluation.bare_tasks)"
            )
        return self


class ExperimentConfig(Config):
    """A whole experiment: everything its rounds do follows from this value and its seed.

    With engine ``slime`` the start checkpoint is a Hugging Face folder, and what is not said of
    ``train``, ``temperature`` and ``max_new_tokens`` is taken from the launch file.
    """

    name: Name
    title: str = ""
    engine: Literal["local", "slime"] = "local"
    slime: SlimeSettings | None = None
    seed: Seed = DEFAULT_SEED
    mask_seed: Seed = DEFAULT_MASK_SEED
    rounds: Annotated[int, Field(ge=1, le=MOST_ROUNDS)] = 4
    world: WorldConfig = WorldConfig()
    start: StartConfig
    temperature: Positive = 1.0
    max_new_tokens: Count = 7
    threads: Count | None = None
    curriculum: CurriculumSettings = CurriculumSettings()
    train: TrainSettings = TrainSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    analyst: AnalystSettings = AnalystSettings()
    gate: GateSettings = GateSettings()

    @model_validator(mode="after")
    def _an_engine_has_its_settings(self) -> ExperimentConfig:
        if (self.engine == "slime") != (self.slime is not None):
            raise ValueError("slime must be set exactly when the engine is 'slime'")
        if self.slime is not None and self.analyst.watch:
            raise ValueError("analyst.watch works beside the embedded engine only")
        return self

    def with_seed(self, seed: int) -> ExperimentConfig:
        """The same experiment with other luck: tasks, sampling and masks all follow ``seed``."""
        digest = fingerprint({"mask_seed_of": seed})
        return self.model_copy(update={"seed": seed, "mask_seed": int(digest[:8], 16)})
