"""Thresholds and sizes of the standard profile. All of them are part of a gate's identity."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from trainer.config import Config, Count, Positive

Level = Annotated[float, Field(gt=0, lt=1)]
Size = Annotated[int, Field(ge=0)]


class StandardSettings(Config):
    """When to adopt, keep, hold and retire, in reward units and one-sided levels.

    A candidate is adopted when its own p-value is at most ``adopt_alpha`` and the one that Holm's
    rule adjusts for all candidates at most ``adopt_familywise``. A current chunk is kept when its
    lower bound at ``keep_confidence`` is above 0. It is retired when its upper bound at
    ``retire_confidence`` lies below ``retire_margin``, the smallest effect worth its place, unless
    its lower bound at ``doubt_confidence`` is above 0: then it has the benefit of the doubt. It is
    also retired when its 90 % interval lies inside ±``equivalence_margin``. Else it is held.

    ``looks`` batches share the tasks; ``confirm_tasks`` tasks are kept out of the selection to play
    the new bank against the old one.
    """

    adopt_alpha: Level = 0.05
    adopt_familywise: Level = 0.25
    keep_confidence: Level = 0.95
    doubt_confidence: Level = 0.65
    retire_confidence: Level = 0.99
    retire_margin: Positive = 0.05
    equivalence_margin: Positive = 0.01
    redraws: Size = 2000
    bootstrap: Size = 2000
    looks: Annotated[int, Field(ge=1, le=10)] = 1
    confirm_tasks: Size = 0
    shared_noise: bool = True

    minimum_adjusting: Count = 30
