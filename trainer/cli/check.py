"""``python -m trainer check CONFIG``: is everything there that a command will read?"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from trainer.cli.main import EXIT_INCOMPLETE, add_json_flag, print_json
from trainer.config import AnalystConfig, EvaluateConfig, TrainConfig
from trainer.config_files import is_launch, load_config, read_yaml
from trainer.errors import InputError
from trainer.experiment_config import ExperimentConfig
from trainer.gate.config import ColdStartGateConfig, GateConfig
from trainer.preflight.inputs import Inputs, NamedCheck, run_checks
from trainer.preflight.stages import (
    SCOPE,
    analyst_checks,
    cold_start_gate_checks,
    evaluation_checks,
    experiment_checks,
    gate_checks,
    training_checks,
)


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``check``."""
    parser = subparsers.add_parser("check", help="check a configuration and its inputs, offline")
    parser.add_argument("config", type=Path)
    parser.add_argument("--live", action="store_true", help="slime: also ask the shop service")
    parser.set_defaults(func=run_check)
    add_json_flag(parser)


def run_check(args: argparse.Namespace) -> int:
    """Print every finding; exit code 1 when something is not ready."""
    document = check_config(args.config, live=args.live)
    print_json(document)
    return 0 if document["ready"] else EXIT_INCOMPLETE


def check_config(path: Path, *, live: bool = False) -> dict[str, Any]:
    """``{ready, checks[], scope, ...}`` of any configuration file.

    Raises InputError when the file itself cannot be understood.
    """
    if is_launch(read_yaml(path)):
        from trainer.engines.slime.preflight import check_slime

        return check_slime(path, os.environ, live=live)
    inputs = Inputs()
    findings = run_checks(checks_of(path), inputs)
    ready = all(finding.ok for finding in findings)
    return {
        "status": "ready" if ready else "incomplete",
        "ready": ready,
        "scope": SCOPE,
        **inputs.facts,
        "checks": [finding.to_record() for finding in findings],
    }


def checks_of(path: Path) -> list[NamedCheck]:
    """The checks of a configuration file, by its ``stage`` key; an experiment has none."""
    stage = read_yaml(path).get("stage")
    if stage == "train":
        return training_checks(load_config(path, TrainConfig))
    if stage == "evaluate":
        return evaluation_checks(load_config(path, EvaluateConfig))
    if stage == "analyse":
        return analyst_checks(load_config(path, AnalystConfig))
    if stage == "gate":
        return gate_checks(load_config(path, GateConfig))
    if stage == "cold_start_gate":
        return cold_start_gate_checks(load_config(path, ColdStartGateConfig))
    if stage is None:
        return experiment_checks(load_config(path, ExperimentConfig))
    raise InputError(
        "nothing is known to check for this stage",
        file=path,
        field="stage",
        value=stage,
        remedy="Known: train, evaluate, analyse, gate, cold_start_gate; "
        "leave it out for a whole experiment",
    )
