"""Which checks each kind of configuration gets, in the order of their dependence.

"Ready" speaks of the inputs only, not of the machine. Specification: training.md §7.
"""

from __future__ import annotations

from trainer.config import AnalystConfig, EvaluateConfig, TrainConfig
from trainer.experiment_config import ExperimentConfig
from trainer.gate.config import ColdStartGateConfig, GateConfig
from trainer.preflight import checks
from trainer.preflight.inputs import Inputs, NamedCheck, run_checks

SCOPE = "offline_inputs_only"


def training_checks(config: TrainConfig) -> list[NamedCheck]:
    """The checks of a training round."""
    return [
        ("world", lambda inputs: checks.world(inputs, config.world)),
        ("skillbank", lambda inputs: checks.bank(inputs, config.skillbank)),
        ("curriculum", lambda inputs: checks.curriculum(inputs, config.curriculum)),
        ("curriculum_of_bank", lambda inputs: checks.same_bank(inputs, config)),
        ("curriculum_chunks", lambda inputs: checks.same_chunks(inputs, config)),
        ("contributions", lambda inputs: checks.contributions(inputs, config)),
        ("tasks", lambda inputs: checks.tasks(inputs, config)),
        ("checkpoint", lambda inputs: checks.policy(inputs, config.policy)),
        ("disk", lambda inputs: checks.disk(config.output_dir)),
    ]


def evaluation_checks(config: EvaluateConfig) -> list[NamedCheck]:
    """The checks of an evaluation."""
    listed: list[NamedCheck] = [
        ("world", lambda inputs: checks.world(inputs, config.world)),
        ("split", lambda inputs: checks.split(inputs, config.tasks.split)),
        ("checkpoint", lambda inputs: checks.policy(inputs, config.policy)),
        ("disk", lambda inputs: checks.disk(config.output_dir)),
    ]
    if config.skills.bank is not None:
        bank = config.skills.bank
        listed.insert(1, ("skillbank", lambda inputs: checks.bank(inputs, bank)))
    return listed


def analyst_checks(config: AnalystConfig) -> list[NamedCheck]:
    """The checks of an analysis."""
    return [
        ("world", lambda inputs: checks.world(inputs, config.world)),
        ("analyst", lambda inputs: checks.analyst(inputs, config.analyst)),
        ("skillbank", lambda inputs: checks.bank(inputs, config.skillbank)),
        ("training_round", lambda inputs: checks.file(config.training_dir / "groups.jsonl")),
        ("ledger_history", lambda inputs: checks.file(config.ledger_history)),
        ("disk", lambda inputs: checks.disk(config.output_dir)),
    ]


def gate_checks(config: GateConfig) -> list[NamedCheck]:
    """The checks of a gate, as far as nothing needs to be drawn or played."""
    return [
        ("world", lambda inputs: checks.world(inputs, config.world)),
        ("split", lambda inputs: checks.split(inputs, config.split)),
        ("candidate_pool", lambda inputs: checks.pool(config.candidate_pool)),
        ("bare_run", lambda inputs: checks.file(config.bare_run / "manifest.json")),
        ("checkpoint", lambda inputs: checks.policy(inputs, config.policy)),
        ("disk", lambda inputs: checks.disk(config.output_dir)),
    ]


def cold_start_gate_checks(config: ColdStartGateConfig) -> list[NamedCheck]:
    """The checks of the gate of a draft."""
    return [
        ("world", lambda inputs: checks.world(inputs, config.world)),
        ("split", lambda inputs: checks.split(inputs, config.split)),
        ("draft", lambda inputs: checks.draft(config)),
        ("bare_run", lambda inputs: checks.file(config.bare_run / "manifest.json")),
        ("checkpoint", lambda inputs: checks.policy(inputs, config.policy)),
        ("disk", lambda inputs: checks.disk(config.output_dir)),
    ]


def experiment_checks(config: ExperimentConfig) -> list[NamedCheck]:
    """The checks of a whole experiment, before its first round."""
    return [
        ("world", lambda inputs: checks.world(inputs, config.world)),
        ("splits", lambda inputs: checks.splits(inputs, config)),
        ("skillbank", lambda inputs: checks.bank(inputs, config.start.skillbank)),
        ("effects", checks.effects),
        *_policy_checks(config),
        ("analyst", lambda inputs: checks.analyst(inputs, config.analyst)),
    ]


def _policy_checks(config: ExperimentConfig) -> list[NamedCheck]:
    start = config.start.checkpoint
    if config.slime is None:
        return [("checkpoint", lambda inputs: checks.checkpoint(inputs, start))]
    from trainer.engines.slime.experiment_checks import slime_checks

    return slime_checks(start, config.slime)


def require_training(config: TrainConfig) -> Inputs:
    """What a training round reads, checked. Raises the first problem as InputError."""
    inputs = Inputs()
    run_checks(training_checks(config), inputs)
    if inputs.errors:
        raise inputs.errors[0]
    return inputs
