"""``python -m trainer analyst run CONFIG``: from a round's failures to a candidate pool."""

from __future__ import annotations

import argparse
from pathlib import Path

from trainer.analyst.run import run_analysis
from trainer.cli.main import add_json_flag, print_json
from trainer.config import AnalystConfig, load_config
from trainer.lock import exclusive
from trainer.progress import listen_for_stop


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``analyst``."""
    group = subparsers.add_parser("analyst", help="turn a round's failures into candidates")
    commands = group.add_subparsers(dest="analyst_command", required=True)
    parser = commands.add_parser("run", help="analyse what is pending and freeze the pool")
    parser.add_argument("config", type=Path)
    parser.set_defaults(func=run_run)
    add_json_flag(parser)


def run_run(args: argparse.Namespace) -> int:
    """Write pool, ledger and summary."""
    config = load_config(args.config, AnalystConfig)
    listen_for_stop()
    with exclusive(config.output_dir):
        summary = run_analysis(config)
    print_json(summary)
    return 0
