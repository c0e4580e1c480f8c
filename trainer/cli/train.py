"""``python -m trainer train CONFIG``: one round of training, started or continued."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from trainer.cli.main import add_json_flag, print_json
from trainer.config import TrainConfig
from trainer.config_files import load_config
from trainer.engines.open import open_training
from trainer.files import write_json
from trainer.grpo.loop import TrainingRun, starting_counters
from trainer.lock import exclusive
from trainer.preflight.inputs import need_curriculum, need_world
from trainer.preflight.stages import require_training
from trainer.progress import listen_for_stop
from trainer.sinks.wandb import training_sinks


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``train``."""
    parser = subparsers.add_parser("train", help="train one round on a frozen curriculum")
    parser.add_argument("config", type=Path)
    parser.set_defaults(func=run_train)
    add_json_flag(parser)


def run_train(args: argparse.Namespace) -> int:
    """Train to the end of the round; what is already on disk is not done again."""
    config = load_config(args.config, TrainConfig)
    listen_for_stop()
    inputs = require_training(config)
    world = need_world(inputs)
    with exclusive(config.output_dir):
        run = TrainingRun(
            config=config,
            world=world,
            engine=open_training(config, world),
            curriculum=need_curriculum(inputs),
            tasks=inputs.tasks,
            start=starting_counters(config.policy.checkpoint),
            sinks=training_sinks(
                os.environ,
                name=config.name,
                round_id=config.round_id,
                folder=config.output_dir,
            ),
        )
        try:
            record = run.run()
        finally:
            run.sinks.close()
        write_json(config.output_dir / "summary.json", record)
    print_json(record)
    return 0
