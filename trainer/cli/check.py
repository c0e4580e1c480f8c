"""``python -m trainer check CONFIG``: is everything there that a command will read?"""

from __future__ import annotations

import argparse
from pathlib import Path

from trainer.cli.main import EXIT_INCOMPLETE, add_json_flag, print_json
from trainer.config import EvaluateConfig, ExperimentConfig, TrainConfig, load_config, read_yaml
from trainer.errors import InputError
from trainer.preflight import (
    SCOPE,
    Inputs,
    NamedCheck,
    evaluation_checks,
    experiment_checks,
    run_checks,
    training_checks,
)


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``check``."""
    parser = subparsers.add_parser("check", help="check a configuration and its inputs, offline")
    parser.add_argument("config", type=Path)
    parser.set_defaults(func=run_check)
    add_json_flag(parser)


def run_check(args: argparse.Namespace) -> int:
    """Print every finding; exit code 1 when something is not ready."""
    inputs = Inputs()
    findings = run_checks(checks_of(args.config), inputs)
    ready = all(finding.ok for finding in findings)
    print_json(
        {
            "status": "ready" if ready else "incomplete",
            "ready": ready,
            "scope": SCOPE,
            **inputs.facts,
            "checks": [finding.to_record() for finding in findings],
        }
    )
    return 0 if ready else EXIT_INCOMPLETE


def checks_of(path: Path) -> list[NamedCheck]:
    """The checks of a configuration file, by its ``stage`` key; an experiment has none."""
    stage = read_yaml(path).get("stage")
    if stage == "train":
        return training_checks(load_config(path, TrainConfig))
    if stage == "evaluate":
        return evaluation_checks(load_config(path, EvaluateConfig))
    if stage is None:
        return experiment_checks(load_config(path, ExperimentConfig))
    raise InputError(
        "nothing is known to check for this stage",
        file=path,
        field="stage",
        value=stage,
        remedy="Known: train, evaluate; leave it out for a whole experiment",
    )
