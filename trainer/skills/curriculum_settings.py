"""The settings of an experiment's curricula."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from trainer.config_base import Config, Positive, Probability


class CurriculumSettings(Config):
    """q and the range of rho, equal in all rounds (training.md §2.2).

    ``controller`` ``gap_closing`` lets q rise from ``skill_free_probability`` towards ``q_max``, by
    at most ``q_step`` a round, as the policy takes the skill in (``curriculum_controller``).
    ``expected_chunks`` holds the mean number of chunks that an assisted group sees
    (``curriculum_budget``); without it the largest effect, or ``contribution_scale``, sets the
    scale.
    """

    skill_free_probability: Probability = 0.2
    rho_min: Probability = 0.2
    rho_max: Probability = 0.9
    contribution_scale: Positive | None = None
    controller: Literal["fixed", "gap_closing"] = "fixed"
    q_max: Probability = 0.6
    q_step: Positive = 0.1
    expected_chunks: Positive | None = None

    @model_validator(mode="after")
    def _rho_has_a_range(self) -> CurriculumSettings:
        if self.rho_min > self.rho_max:
            raise ValueError(f"rho_min ({self.rho_min}) must not exceed rho_max ({self.rho_max})")
        return self

    @model_validator(mode="after")
    def _an_adaptive_q_begins_above_zero(self) -> CurriculumSettings:
        if self.controller != "fixed" and not 0 < self.skill_free_probability <= self.q_max:
            raise ValueError(
                "an adaptive q needs 0 < skill_free_probability <= q_max: without skill-free "
                "groups nothing says whether the policy needs the skill"
            )
        return self

    @model_validator(mode="after")
    def _one_way_to_set_the_scale(self) -> CurriculumSettings:
        if self.expected_chunks is not None and self.contribution_scale is not None:
            raise ValueError("set contribution_scale or expected_chunks, not both")
        return self
