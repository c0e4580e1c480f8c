"""``python -m trainer gate run | plan``: judge the chunks of a round."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from trainer.cli.main import add_json_flag, print_json
from trainer.config import DEFAULT_MASK_SEED, DEFAULT_SEED, load_config
from trainer.progress import listen_for_stop


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``gate``."""
    group = subparsers.add_parser("gate", help="judge which chunks earn their place")
    commands = group.add_subparsers(dest="gate_command", required=True)

    run = commands.add_parser("run", help="carry a gate out, or continue it")
    run.add_argument("config", type=Path)
    run.set_defaults(func=run_run)

    plan = commands.add_parser("plan", help="show the design of a gate; nothing is played")
    plan.add_argument("--pool", type=Path, required=True)
    plan.add_argument("--split-file", type=Path, required=True)
    plan.add_argument("--split", default="val")
    plan.add_argument("--experiment-seed", type=int, default=DEFAULT_SEED)
    plan.add_argument("--mask-seed", type=int, default=DEFAULT_MASK_SEED)
    plan.add_argument("--profile", choices=("published", "standard"), default="published")
    plan.add_argument("--sd", type=float, default=0.3, help="SD of a task difference in reward")
    plan.set_defaults(func=run_plan)

    for command in (run, plan):
        add_json_flag(command)


def run_run(args: argparse.Namespace) -> int:
    """Run or continue a gate; exit code 1 when it stays incomplete."""
    from trainer.engines.open import open_policy
    from trainer.gate.config import GateConfig
    from trainer.gate.run import open_gate
    from trainer.lock import exclusive
    from trainer.shop.world import load_world

    config = load_config(args.config, GateConfig)
    listen_for_stop()
    with exclusive(config.output_dir):
        world = load_world(config.world.profile, catalogue=config.world.catalogue)
        opened = open_policy(config.policy, world, folder=_started_in(config.output_dir))
        manifest = open_gate(config, world, opened.policy, opened.facts).run()
    print_json(_report(config.output_dir, manifest))
    return 0


def _started_in(folder: Path) -> Path:
    """The folder that recorded the thread count: the first look of a gate in several looks."""
    first = folder / "looks" / "look-01"
    return first if first.exists() else folder


def _report(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    from trainer.files import read_json

    contributions = read_json(folder / "contributions.json")
    rows = read_json(folder / "inference.json")["rows"]
    inference = {row["intervention_id"]: row for row in rows}
    return {
        "status": manifest["status"],
        "observations": contributions["observations"],
        "requested_observations": contributions["requested_observations"],
        "selected_chunk_ids": manifest["output"]["selected_chunk_ids"],
        "contributions": [
            {
                "intervention_id": row["intervention_id"],
                "coefficient": row["coefficient"],
                "se": inference[row["intervention_id"]]["se"],
                "rank": row["rank"],
                "status": row["status"],
            }
            for row in contributions["contributions"]
        ],
        "output": manifest["output"],
    }


def run_plan(args: argparse.Namespace) -> int:
    """Print hashes, columns, slots and the standard errors to expect."""
    from trainer.gate.planner import plan_summary
    from trainer.gate.pool import load_pool
    from trainer.shop.splits import load_splits

    print_json(
        plan_summary(
            load_pool(args.pool),
            task_ids=load_splits(args.split_file).split(args.split).task_ids,
            split=args.split,
            experiment_seed=args.experiment_seed,
            mask_seed=args.mask_seed,
            profile=args.profile,
            sd=args.sd,
        )
    )
    return 0
