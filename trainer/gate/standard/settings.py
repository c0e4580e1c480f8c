"""Thresholds and sizes of the standard profile. All of them are part of a gate's identity."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from trainer.config_base import Config, Count, Positive

Level = Annotated[float, Field(gt=0, le=0.5)]  # of a one-sided error
Confidence = Annotated[float, Field(ge=0.5, lt=1)]  # of a one-sided bound
Draws = Annotated[int, Field(ge=100, le=100_000)]
Looks = Annotated[int, Field(ge=1, le=10)]
Size = Annotated[int, Field(ge=0)]

MASKED_PER_TASK = 2
ARMS = ("new", "old", "bare")  # of a confirmation


class StandardSettings(Config):
    """When to adopt, keep, hold and retire, in reward units and one-sided levels.

    A candidate is adopted when its own p-value is at most ``adopt_alpha`` and the one that Holm's
    rule adjusts for all candidates at most ``adopt_familywise``. A current chunk is kept when its
    lower bound at ``keep_confidence`` is above 0. It is retired when its upper bound at
    ``retire_confidence`` lies below ``retire_margin``, the smallest effect worth its place, unless
    its lower bound at ``doubt_confidence`` is above 0: then it has the benefit of the doubt. It is
    also retired when its 90 % interval lies inside ±``equivalence_margin``. Else it is held.

    ``redraws`` randomisation draws give the p-values, ``bootstrap`` refits the frequencies of the
    decisions. ``looks`` batches share the tasks; ``confirm_tasks`` tasks (0: none) are kept out of
    the selection to play the new bank against the old one. With ``shared_noise`` all rollouts of a
    task use the same random numbers, where the engine has such. The bare outcome is adjusted for
    when at least ``minimum_adjusting`` tasks have one.
    """

    adopt_alpha: Level = 0.05
    adopt_familywise: Level = 0.25
    keep_confidence: Confidence = 0.95
    doubt_confidence: Confidence = 0.65
    retire_confidence: Confidence = 0.99
    retire_margin: Positive = 0.05
    equivalence_margin: Positive = 0.01
    redraws: Draws = 2000
    bootstrap: Draws = 2000
    looks: Looks = 1
    confirm_tasks: Size = 0
    shared_noise: bool = True
    minimum_adjusting: Count = 30

    @model_validator(mode="after")
    def _no_threshold_contradicts_another(self) -> StandardSettings:
        if self.adopt_alpha > self.adopt_familywise:
            raise ValueError("adopt_familywise must be at least adopt_alpha")
        if self.doubt_confidence > self.keep_confidence:
            raise ValueError(
                "keep_confidence must be at least doubt_confidence, or a chunk that helps could "
                "be retired"
            )
        if self.equivalence_margin > self.retire_margin:
            raise ValueError("retire_margin must be at least equivalence_margin")
        if self.confirm_tasks == 1:
            raise ValueError("confirm_tasks must be 0 or at least 2: one task has no interval")
        return self
