"""``python -m trainer gate run | plan | fit | refit | power``: judge the chunks of a round."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from trainer.cli.main import EXIT_INCOMPLETE, add_json_flag, print_json
from trainer.config import DEFAULT_GATE_PROFILE, DEFAULT_MASK_SEED, DEFAULT_SEED
from trainer.config_files import parse_config, read_yaml
from trainer.errors import InputError, typed_as
from trainer.progress import listen_for_stop
from trainer.reading import Node

PROFILES = ("published", "standard")
MOST_TASKS, MOST_SLOTS = 100_000, 64


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``gate``. The statistics are imported by the commands, not by the parser."""
    group = subparsers.add_parser("gate", help="judge which chunks earn their place")
    commands = group.add_subparsers(dest="gate_command", required=True)
    run = commands.add_parser("run", help="carry a round's or a draft's gate out, or continue it")
    run.add_argument("config", type=Path)
    run.set_defaults(func=run_run)
    _register_plan(commands.add_parser("plan", help="show a gate's design; nothing is played"))
    fit = commands.add_parser("fit", help="fit a finished gate again, as it was")
    fit.add_argument("folder", type=Path)
    fit.set_defaults(func=run_fit)
    _register_refit(commands.add_parser("refit", help="judge a finished gate by other rules"))
    _register_power(commands.add_parser("power", help="what a gate will be able to see"))
    for command in commands.choices.values():
        add_json_flag(command)


def _register_plan(plan: argparse.ArgumentParser) -> None:
    plan.add_argument("--pool", type=Path, required=True)
    plan.add_argument("--split-file", type=Path, required=True)
    plan.add_argument("--split", default="val")
    plan.add_argument("--experiment-seed", type=int, default=DEFAULT_SEED)
    plan.add_argument("--mask-seed", type=int, default=DEFAULT_MASK_SEED)
    plan.add_argument(
        "--profile", choices=PROFILES, default="published", help="published unless said otherwise"
    )
    plan.add_argument("--sd", type=float, default=0.3, help="SD of a task difference in reward")
    plan.set_defaults(func=run_plan)


def _register_refit(refit: argparse.ArgumentParser) -> None:
    refit.add_argument("folder", type=Path)
    refit.add_argument("--profile", choices=PROFILES, required=True)
    refit.add_argument("--budget", type=int, help="active skill budget (default: the gate's)")
    refit.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a standard threshold"
    )
    refit.add_argument("--out", type=Path, help="also write the report to this new file")
    refit.set_defaults(func=run_refit)


def _register_power(power: argparse.ArgumentParser) -> None:
    power.add_argument("--tasks", type=int, required=True)
    power.add_argument("--profile", choices=PROFILES, default=DEFAULT_GATE_PROFILE)
    power.add_argument("--sd", type=float, help="SD of a task difference in reward")
    power.add_argument("--gate", type=Path, help="take SD and slots from this finished gate")
    power.add_argument("--pool", type=Path, help="take the slots from this candidate pool")
    power.add_argument("--slots", "--chunks", dest="chunks", type=int, help="current chunks (10)")
    power.add_argument("--rewrites", type=int, nargs="*", help="of the first chunks")
    power.add_argument("--additions", type=int)
    power.add_argument("--effect", type=float, help="the effect one wishes to find")
    power.set_defaults(func=run_power)


def run_run(args: argparse.Namespace) -> int:
    """Run or continue a gate; exit code 1 when it stays incomplete."""
    from trainer.engines.open import open_policy
    from trainer.gate.config import ColdStartGateConfig, GateConfig
    from trainer.gate.run import open_gate
    from trainer.lock import exclusive
    from trainer.shop.world import load_world

    values = read_yaml(args.config)
    config: GateConfig | ColdStartGateConfig
    if values.get("stage") == "cold_start_gate":
        config = parse_config(values, ColdStartGateConfig, file=args.config)
    else:
        config = parse_config(values, GateConfig, file=args.config)
    listen_for_stop()
    with exclusive(config.output_dir):
        world = load_world(
            config.world.profile, catalogue=config.world.catalogue, splits=config.world.splits
        )
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
                "intervention_id": name,
                "coefficient": row["coefficient"],
                "se": inference[name]["se"],
                "rank": row["rank"],
                "status": row["status"],
            }
            for row in contributions["contributions"]
            for name in [row.get("intervention_id") or row["chunk_id"]]
        ],
        "output": manifest["output"],
    }


def run_plan(args: argparse.Namespace) -> int:
    """Print hashes, columns, slots and the standard errors to expect."""
    from trainer.gate.planner import plan_summary
    from trainer.gate.pool import load_pool
    from trainer.shop.splits import load_splits

    if args.split != "val":
        raise InputError(
            "a gate is played on the validation tasks",
            field="--split",
            value=args.split,
            remedy="use --split val",
        )
    sd = Node(args.sd, None, "--sd").positive()
    print_json(
        plan_summary(
            load_pool(args.pool),
            task_ids=load_splits(args.split_file).split(args.split).task_ids,
            split=args.split,
            experiment_seed=args.experiment_seed,
            mask_seed=args.mask_seed,
            profile=args.profile,
            sd=sd,
        )
    )
    return 0


def run_fit(args: argparse.Namespace) -> int:
    """Fit a gate under its own profile; exit code 1 when it does not come out as it was."""
    from trainer.gate.finished import load_finished, require_unchanged
    from trainer.gate.refit import TOLERANCE, refit

    require_unchanged(args.folder)
    report = refit(load_finished(args.folder))
    print_json(report)
    return 0 if report["largest_difference"] <= TOLERANCE else EXIT_INCOMPLETE


def run_refit(args: argparse.Namespace) -> int:
    """Judge a gate by other rules; the gate itself is never written to."""
    from trainer.files import write_json
    from trainer.gate.finished import load_finished, require_unchanged
    from trainer.gate.refit import refit

    if args.out is not None and args.out.exists():
        raise InputError("exists already", file=args.out, remedy="choose a new file")
    if args.set and args.profile != "standard":
        raise InputError("only the standard profile has thresholds", field="--set", value=args.set)
    require_unchanged(args.folder)
    gate = load_finished(args.folder)
    report = refit(
        gate,
        profile=args.profile,
        budget=args.budget,
        settings=_settings(args.set, gate.settings.model_dump()),
    )
    if args.out is not None:
        write_json(args.out, report)
    print_json(report)
    return 0


def _settings(pairs: list[str], before: dict[str, Any]) -> Any:
    from trainer.gate.standard.settings import StandardSettings

    wrong = [pair for pair in pairs if "=" not in pair]
    if wrong:
        raise InputError("write thresholds as KEY=VALUE", field="--set", value=wrong[0])
    values = {key: value for key, _, value in (pair.partition("=") for pair in pairs)}
    return parse_config({**before, **values}, StandardSettings, file=Path("--set"))


def _refuse_two_layouts(args: argparse.Namespace) -> None:
    """A gate, a pool and counts each say what the slots are; only one of them can."""
    counts = {"--slots": args.chunks, "--rewrites": args.rewrites, "--additions": args.additions}
    named = [flag for flag, value in counts.items() if value is not None]
    files = [f for f, v in (("--gate", args.gate), ("--pool", args.pool)) if v is not None]
    if files and (named or len(files) > 1):
        raise InputError(
            f"the slots come from {files[0]}",
            field=(files[1:] + named)[0],
            remedy="Give one or the other",
        )


def run_power(args: argparse.Namespace) -> int:
    """Print standard errors, detectable effects, rollouts needed and warnings."""
    from trainer.gate.finished import load_finished
    from trainer.gate.planner import imagined_layout, power_report
    from trainer.gate.pool import load_pool
    from trainer.gate.refit import difference_sd
    from trainer.gate.slots import build_layout

    tasks = Node(args.tasks, None, "--tasks").integer(least=1, most=MOST_TASKS)
    effect = None if args.effect is None else Node(args.effect, None, "--effect").positive()
    sd = None if args.sd is None else Node(args.sd, None, "--sd").positive()
    _refuse_two_layouts(args)
    if args.gate is not None:
        gate = load_finished(args.gate)
        layout, sd = gate.layout, difference_sd(gate) if sd is None else sd
    elif args.pool is not None:
        layout = build_layout(load_pool(args.pool))
    else:
        chunks = 10 if args.chunks is None else args.chunks
        chunks = Node(chunks, None, "--slots").integer(least=0, most=MOST_SLOTS)
        rewrites = args.rewrites or []
        additions = Node(args.additions or 0, None, "--additions").integer(least=0, most=MOST_SLOTS)
        for count in rewrites:
            Node(count, None, "--rewrites").integer(least=0, most=MOST_SLOTS)
        if len(rewrites) > chunks:
            raise InputError(
                f"only {chunks} chunks can be rewritten", field="--rewrites", value=rewrites
            )
        layout = imagined_layout(chunks, rewrites, additions)
    if not layout.columns:
        raise InputError("there is nothing to judge", field="--slots", remedy="ask for slots")
    if sd is None:
        raise InputError(
            "the SD of a task difference must be known",
            field="--sd",
            value=sd,
            remedy="give --sd, or --gate with a finished gate",
        )
    with typed_as(effect="--effect"):
        report = power_report(layout, tasks=tasks, sd=sd, profile=args.profile, effect=effect)
    print_json(report)
    return 0
