"""``python -m trainer prepare-data SPLIT_FILE SPLIT OUT``: the task file of a split."""

from __future__ import annotations

import argparse
from pathlib import Path

from trainer.cli.main import add_json_flag, print_json
from trainer.grpo.tasks import prepare_data


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``prepare-data``."""
    parser = subparsers.add_parser("prepare-data", help="write the task file of a split")
    parser.add_argument("split_file", type=Path)
    parser.add_argument("split")
    parser.add_argument("out", type=Path)
    parser.set_defaults(func=run_prepare_data)
    add_json_flag(parser)


def run_prepare_data(args: argparse.Namespace) -> int:
    """Write the file and report its hash."""
    print_json(prepare_data(args.split_file, args.split, args.out))
    return 0
