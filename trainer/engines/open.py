"""From a configuration to an engine: the one place that knows which engine a name stands for.

Engines are imported only when they are opened, because they bring heavy libraries along.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.config import PolicyConfig, TrainConfig
from trainer.engines.endpoint.settings import EndpointSettings
from trainer.errors import InputError
from trainer.files import read_json
from trainer.grpo.engine import TrainingEngine
from trainer.rollout.policy import Policy
from trainer.shop.world import World


@dataclass(frozen=True, slots=True)
class OpenedPolicy:
    """A policy and the facts of its execution, the thread count among them."""

    policy: Policy
    facts: Mapping[str, Any]


def open_policy(config: PolicyConfig, world: World, *, folder: Path) -> OpenedPolicy:
    """The policy of a configuration. A run that already started in ``folder`` keeps its threads.

    Raises InputError when the checkpoint is missing, damaged or bound to another catalogue.
    """
    if config.endpoint is not None:
        return _open_endpoint(config, config.endpoint, world)
    from trainer.engines.local.engine import load_policy

    policy, threads = load_policy(
        config.checkpoint,
        world,
        temperature=config.temperature,
        max_new_tokens=config.max_new_tokens,
        threads=recorded_threads(folder) or config.threads,
    )
    return OpenedPolicy(policy, {"threads": threads})


def _open_endpoint(config: PolicyConfig, settings: EndpointSettings, world: World) -> OpenedPolicy:
    from trainer.engines.endpoint.checkpoint import checkpoint_identity
    from trainer.engines.endpoint.policy import EndpointPolicy

    if world.language is not None:
        raise InputError(
            "a chat server calls functions, and this world speaks words",
            field="policy.engine",
            value=config.engine,
            remedy=f"Choose another profile than {world.profile.name}",
        )
    policy = EndpointPolicy(
        settings,
        temperature=config.temperature,
        max_new_tokens=config.max_new_tokens,
        checkpoint=checkpoint_identity(config.checkpoint, settings),
    )
    return OpenedPolicy(policy, {})


def open_training(config: TrainConfig, world: World) -> TrainingEngine:
    """The engine of a training round, at its starting checkpoint."""
    from trainer.engines.local.engine import LocalEngine

    return LocalEngine.open(
        config.policy,
        config.optimiser,
        world,
        threads=recorded_threads(config.output_dir) or config.policy.threads,
    )


def recorded_threads(folder: Path) -> int | None:
    """The thread count of a run that was started in ``folder`` before."""
    manifest = folder / "manifest.json"
    if not manifest.exists():
        return None
    threads = read_json(manifest)["execution"].get("threads")
    return None if threads is None else int(threads)
