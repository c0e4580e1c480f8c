"""The values of one episode: what is to be done, with which text, and what came of it.

Specification: environment.md §6.3-6.5, gate-analysis.md §0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainer.canonical import episode_seed
from trainer.rollout.policy import TokenRecord
from trainer.skills.types import Chunk


def evaluation_id(task_id: int, sample_id: int) -> str:
    """The id of an evaluation episode."""
    return f"task-{task_id:06d}__sample-{sample_id:03d}"


@dataclass(frozen=True, slots=True)
class EpisodeJob:
    """One episode of a plan; its seed follows from the experiment's seed, task and sample."""

    task_id: int
    sample_id: int
    seed: int
    split: str

    @classmethod
    def of(cls, seed: int, task_id: int, sample_id: int, split: str) -> EpisodeJob:
        """The job with its derived episode seed."""
        return cls(task_id, sample_id, episode_seed(seed, task_id, sample_id), split)

    @property
    def episode_id(self) -> str:
        """The id of an evaluation episode."""
        return evaluation_id(self.task_id, self.sample_id)

    @property
    def noise_key(self) -> str:
        """The key of its random numbers: equal in all arms that evaluate the same job."""
        return f"{self.split}:{self.task_id}:{self.sample_id}:{self.seed}"

    def to_record(self) -> dict[str, Any]:
        """The job as plans and traces store it."""
        return {
            "task_id": self.task_id,
            "sample_id": self.sample_id,
            "seed": self.seed,
            "split": self.split,
        }


@dataclass(frozen=True, slots=True)
class EpisodeRequest:
    """An episode to play: the job, the chunks its prompt shows and what the trace says of them.

    ``skills`` becomes ``provenance.skills`` of the trace; the other provenance sections belong to
    the run, not to the episode. ``extra`` is merged into the top level of the trace.
    """

    job: EpisodeJob
    episode_id: str
    noise_key: str
    chunks: tuple[Chunk, ...] = ()
    skills: Mapping[str, Any] = field(default_factory=lambda: {"provider": "none"})
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EpisodeResult:
    """A finished episode.

    ``reward`` holds ``reward`` and every numeric ``r_*`` when the episode could be scored, else
    nothing. ``tokens`` are the exact ones of the engine, or None where it has none. ``trace`` is
    the JSON document that is written.
    """

    request: EpisodeRequest
    trace: Mapping[str, Any]
    reward: Mapping[str, float]
    scored: bool
    tokens: TokenRecord | None

    @property
    def success(self) -> bool:
        """Scored, and the purchase met every wish."""
        return self.scored and self.reward["r_success"] == 1.0

    @property
    def completed(self) -> bool:
        """The episode came to its end in the shop, whether or not its score could be used."""
        return bool(self.trace["status"] == "completed")
