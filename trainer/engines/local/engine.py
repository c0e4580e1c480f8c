"""The embedded engine as commands open it: a policy to evaluate with, or one in training."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from trainer.config import OptimiserConfig, PolicyConfig
from trainer.engines.local.checkpoint import (
    Checkpoint,
    load_checkpoint,
    load_state,
    save_checkpoint,
    save_state,
)
from trainer.engines.local.loss import ClipRange
from trainer.engines.local.policy import LocalPolicy, Sampling
from trainer.engines.local.threads import use_threads
from trainer.engines.local.update import Learner, UpdateSettings
from trainer.grpo.engine import TrainingEpisode
from trainer.shop.world import World


def load_policy(
    checkpoint: Path,
    world: World,
    *,
    temperature: float = 1.0,
    max_new_tokens: int = 7,
    threads: int | None = None,
) -> tuple[LocalPolicy, int]:
    """The sampler of a frozen checkpoint, and the thread count that torch was set to.

    ``threads`` None times the candidates. Raises InputError when the checkpoint cannot be used.
    """
    count = use_threads(threads).threads
    loaded = load_checkpoint(checkpoint, catalogue_sha256=world.identity()["catalogue_sha256"])
    _spare_the_collector()
    return LocalPolicy(loaded.model, loaded.tokenizer, Sampling(temperature, max_new_tokens)), count


def update_settings(config: OptimiserConfig, *, temperature: float) -> UpdateSettings:
    """The settings of a configuration, for tokens that were sampled at ``temperature``."""
    return UpdateSettings(
        learning_rate=config.learning_rate,
        clip=ClipRange(1 - config.clip_low, 1 + config.clip_high),
        betas=config.betas,
        weight_decay=config.weight_decay,
        warmup_updates=config.warmup_updates,
        gradient_clip=config.gradient_clip,
        micro_batch=config.micro_batch,
        temperature=temperature,
    )


def _spare_the_collector() -> None:
    """Keep the world out of garbage collections: walking through it costs a third of a rollout."""
    gc.collect()
    gc.freeze()


class LocalEngine:
    """Weights, optimiser and sampler of a training round; implements ``TrainingEngine``."""

    def __init__(
        self, checkpoint: Checkpoint, sampling: Sampling, settings: UpdateSettings, *, threads: int
    ) -> None:
        self._start = checkpoint
        self._threads = threads
        self._learner = Learner(checkpoint.model, settings)
        self._policy = LocalPolicy(checkpoint.model, checkpoint.tokenizer, sampling)

    @classmethod
    def open(
        cls,
        policy: PolicyConfig,
        optimiser: OptimiserConfig,
        world: World,
        *,
        threads: int | None = None,
    ) -> Self:
        """The engine at the starting checkpoint. Raises InputError when that cannot be used."""
        count = use_threads(threads).threads
        catalogue = world.identity()["catalogue_sha256"]
        _spare_the_collector()
        return cls(
            load_checkpoint(policy.checkpoint, catalogue_sha256=catalogue),
            Sampling(policy.temperature, policy.max_new_tokens),
            update_settings(optimiser, temperature=policy.temperature),
            threads=count,
        )

    @property
    def policy(self) -> LocalPolicy:
        """The sampler over the current weights."""
        return self._policy

    def facts(self) -> dict[str, Any]:
        """The thread count: it may decide the last bits of sums."""
        return {"threads": self._threads}

    def update(self, episodes: Sequence[TrainingEpisode]) -> dict[str, float]:
        """One optimiser update; its metrics by full name."""
        return self._learner.update(episodes).to_record()

    def save_state(self, path: Path, counters: Mapping[str, Any]) -> None:
        """Publish weights, optimiser and ``counters`` in one atomic file."""
        save_state(path, {**self._learner.state(), "counters": dict(counters)})

    def load_state(self, path: Path) -> dict[str, Any]:
        """Restore what ``save_state`` wrote and return its counters. Raises InputError."""
        state = load_state(path)
        counters: dict[str, Any] = state.pop("counters")
        self._learner.restore(state)
        return counters

    def save_checkpoint(self, folder: Path, record: Mapping[str, Any]) -> dict[str, Any]:
        """Publish the weights as a frozen checkpoint with ``record`` in its document."""
        start = self._start
        return save_checkpoint(
            folder,
            start.model,
            start.tokenizer,
            catalogue_sha256=start.document["catalogue_sha256"],
            recipe=start.document["recipe"],
            record=record,
        )
