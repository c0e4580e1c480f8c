"""What the training loop asks of an engine that holds its weights in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from trainer.rollout.policy import Policy, TokenRecord


@dataclass(frozen=True, slots=True)
class TrainingEpisode:
    """The exact tokens of an episode and the advantage that all its sampled tokens share."""

    tokens: TokenRecord
    advantage: float


class TrainingEngine(Protocol):
    """Weights, optimiser and sampler of one run."""

    @property
    def policy(self) -> Policy:
        """The sampler over the current weights."""
        ...

    def facts(self) -> Mapping[str, Any]:
        """Facts of execution to record and to use again on resume, ``threads`` among them."""
        ...

    def update(self, episodes: Sequence[TrainingEpisode]) -> dict[str, float]:
        """One optimiser update; returns its metrics by full name (``train/loss``, ...)."""
        ...

    def save_state(self, path: Path, counters: Mapping[str, Any]) -> None:
        """Publish weights, optimiser and ``counters`` in one atomic file."""
        ...

    def load_state(self, path: Path) -> dict[str, Any]:
        """Restore what ``save_state`` wrote and return its counters."""
        ...

    def save_checkpoint(self, folder: Path, record: Mapping[str, Any]) -> dict[str, Any]:
        """Publish the frozen weights with ``record`` in ``checkpoint.json``; returns that file."""
        ...
