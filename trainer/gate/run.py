"""The door to all gates: a configuration in, the gate that carries it out."""

from __future__ import annotations

from trainer.gate.cold_start.run import ColdStartGate
from trainer.gate.config import ColdStartGateConfig, GateConfig
from trainer.gate.published.run import PublishedGate
from trainer.gate.stage import Gate, Json
from trainer.gate.standard.run import StandardGate
from trainer.rollout.policy import Policy
from trainer.shop.world import World


def open_gate(
    config: GateConfig | ColdStartGateConfig,
    world: World,
    policy: Policy,
    facts: Json | None = None,
) -> Gate:
    """The gate of a configuration; ``facts`` say how the policy is run."""
    facts = facts or {}
    if isinstance(config, ColdStartGateConfig):
        return ColdStartGate(config, world, policy, facts)
    if config.profile == "published":
        return PublishedGate(config, world, policy, facts)
    return StandardGate(config, world, policy, facts)
