"""``python -m trainer analyst run | watch | beside | cold-start``: from failures to candidates."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from trainer.analyst.run import run_analysis
from trainer.analyst.watch import STOP_MARKER, WATCH_FOLDER, end_watch, watch
from trainer.cli.main import add_json_flag, print_json
from trainer.config import AnalystConfig, PolicyConfig
from trainer.config_files import load_config
from trainer.lock import exclusive
from trainer.progress import listen_for_stop
from trainer.rollout.policy import Policy
from trainer.shop.world import World

#: how long a finished training waits for the cards in work
DRAIN_SECONDS = 120.0


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``analyst``."""
    group = subparsers.add_parser("analyst", help="turn a round's failures into candidates")
    commands = group.add_subparsers(dest="analyst_command", required=True)
    run = commands.add_parser("run", help="analyse what is pending and freeze the pool")
    run.set_defaults(func=run_run)
    beside = commands.add_parser("watch", help="make cards while the round is still training")
    beside.set_defaults(func=run_watch)
    first = commands.add_parser("cold-start", help="draft a first skill from a bare evaluation")
    first.set_defaults(func=run_first)
    beside.add_argument("--parent", type=int, help="end when this process is no longer ours")
    both = commands.add_parser("beside", help="train a round with a watch beside it")
    both.add_argument("watch_config", type=Path)
    both.set_defaults(func=run_beside)
    for command in (run, beside, first, both):
        command.add_argument("config", type=Path)
        add_json_flag(command)


def run_run(args: argparse.Namespace) -> int:
    """Write pool, ledger and summary. A watch of the same folder is asked to end first."""
    config = load_config(args.config, AnalystConfig)
    listen_for_stop()
    end_watch(config.output_dir)
    with exclusive(config.output_dir):
        summary = run_analysis(config, lambda policy, world: _open(config, policy, world))
    print_json(summary)
    return 0


def run_watch(args: argparse.Namespace) -> int:
    """Make cards until training has ended or a stop was asked for."""
    config = load_config(args.config, AnalystConfig)
    listen_for_stop()
    with exclusive(config.output_dir), exclusive(config.output_dir / WATCH_FOLDER):
        counts = watch(config, is_training=lambda: args.parent in (None, os.getppid()))
    print_json(counts)
    return 0


def run_beside(args: argparse.Namespace) -> int:
    """Train a round (``config``) while a child makes cards; the child never harms the training."""
    from trainer.cli.train import run_train

    command = [sys.executable, "-m", "trainer", "analyst", "watch", str(args.watch_config)]
    child = subprocess.Popen([*command, "--parent", str(os.getpid())], stdout=sys.stderr)
    try:
        return run_train(args)
    finally:
        _let_end(child, load_config(args.watch_config, AnalystConfig).output_dir)


def _let_end(child: subprocess.Popen[bytes], folder: Path) -> None:
    """Give a watch time for what it has in work; what is left the analysis does later."""
    try:
        child.wait(DRAIN_SECONDS)
    except subprocess.TimeoutExpired:
        (folder / STOP_MARKER).touch()
        child.terminate()
        child.wait()


def run_first(args: argparse.Namespace) -> int:
    """Write cards, clusters, draft and draft bank."""
    from trainer.analyst.cold_start.run import run_cold_start
    from trainer.analyst.cold_start.settings import ColdStartConfig

    config = load_config(args.config, ColdStartConfig)
    listen_for_stop()
    with exclusive(config.output_dir):
        summary = run_cold_start(config)
    print_json(summary)
    return 0


def _open(config: AnalystConfig, policy: PolicyConfig, world: World) -> Policy:
    """The policy of the probe, with the threads that trained it."""
    from trainer.engines.open import open_policy

    return open_policy(policy, world, folder=config.training_dir).policy
