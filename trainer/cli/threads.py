"""``python -m trainer threads``: how many threads suit the embedded engine on this machine."""

from __future__ import annotations

import argparse

from trainer.cli.main import add_json_flag, print_json


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``threads``."""
    parser = subparsers.add_parser("threads", help="time the embedded engine's thread counts")
    parser.set_defaults(func=run_threads)
    add_json_flag(parser)


def run_threads(_args: argparse.Namespace) -> int:
    """Probe, and print the choice with the milliseconds each count took."""
    from trainer.engines.local.threads import probe

    choice = probe()
    times = {str(count): round(took, 2) for count, took in choice.milliseconds.items()}
    print_json({"threads": choice.threads, "milliseconds": times})
    return 0
