"""Groups of made-up episodes for the pure parts of the method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.grpo.groups import Group, sample_indices
from trainer.skills.masks import Treatment


@dataclass(frozen=True)
class MadeUpOutcome:
    """An episode that got ``score`` (None: it could not be scored)."""

    name: str
    score: float | None
    won: bool = False
    steps: tuple[Mapping[str, Any], ...] = ()

    @property
    def scored(self) -> bool:
        return self.score is not None

    @property
    def success(self) -> bool:
        return self.scored and self.won

    @property
    def reward(self) -> Mapping[str, float]:
        if self.score is None:
            return {}
        return {"reward": self.score, "r_strict": self.score, "r_success": float(self.won)}

    @property
    def trace(self) -> Mapping[str, Any]:
        error = {"type": "OSError", "stage": "reset", "category": "environment"}
        return {
            "episode_id": self.name,
            "steps": list(self.steps),
            "final": {"termination_reason": "purchase"} if self.scored else None,
            "error": None if self.scored else error,
            "tokens": {"total": 100, "sampled": 20, "log_prob_mean": -0.5, "log_prob_min": -2.0},
        }


SKILL_FREE = Treatment("skill_free", ())


def group(
    scores: Sequence[float | None], *, number: int = 0, treatment: Treatment = SKILL_FREE
) -> Group:
    """A group with one episode for each score; a score of 1 is a success."""
    return Group(
        group_index=number,
        task_id=100 + number,
        treatment=treatment,
        sample_indices=sample_indices(number, len(scores)),
        outcomes=tuple(
            MadeUpOutcome(f"g{number}-{place}", score, won=score == 1.0)
            for place, score in enumerate(scores)
        ),
    )


def mixed(number: int = 0) -> Group:
    return group([1.0, 0.0] * 4, number=number)


def tied(number: int = 0) -> Group:
    return group([0.5] * 8, number=number)


def unscored(number: int = 0) -> Group:
    return group([1.0] * 7 + [None], number=number)
