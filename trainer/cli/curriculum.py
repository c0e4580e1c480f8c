"""``python -m trainer curriculum build | check | treatment``: freeze a bank, ask what it means."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from trainer.errors import InputError, typed_as
from trainer.skills.bank import load_bank
from trainer.skills.curriculum import load_curriculum, write_curriculum
from trainer.skills.curriculum_build import DEFAULT_SEED, build_curriculum
from trainer.skills.curriculum_controller import Controller, measured_gap
from trainer.skills.masks import treatment

FLAGS = {
    "skill_free_probability": "--q",
    "q_max": "--q-max",
    "rho_min": "--rho-min",
    "rho_max": "--rho-max",
    "contribution_scale": "--scale",
    "expected_chunks": "--expected-chunks",
    "schema": "--schema",
    "source_path": "--source-path",
}


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command group to the trainer's parser."""
    group = subparsers.add_parser("curriculum", help="freeze a skill bank into a curriculum")
    commands = group.add_subparsers(dest="curriculum_command", required=True)

    build = commands.add_parser("build", help="write the curriculum of a bank")
    build.add_argument("bank", type=Path)
    build.add_argument("out", type=Path)
    build.add_argument("--round-id", required=True)
    build.add_argument("--q", type=float, required=True, help="probability of a skill-free group")
    build.add_argument("--rho-min", type=float, required=True)
    build.add_argument("--rho-max", type=float, required=True)
    build.add_argument("--scale", type=float, help="effect that gets rho-max (default: largest)")
    build.add_argument(
        "--expected-chunks", type=float, help="chunks an assisted group sees on average"
    )
    build.add_argument("--q-max", type=float, help="let q rise from --q to this as the gap closes")
    build.add_argument("--q-step", type=float, default=0.1, help="at most so much a round")
    build.add_argument(
        "--gaps", type=Path, nargs="*", default=[], metavar="EVALUATION",
        help="for --q-max: folders with bare/ and full/, of the start and of each round so far",
    )  # fmt: skip
    build.add_argument("--seed", type=int, default=DEFAULT_SEED)
    build.add_argument("--schema", choices=("v1", "v2"), default="v2")
    build.add_argument("--source-path", help="path of the bank to record (v1 hashes it)")
    build.set_defaults(func=run_build)

    check = commands.add_parser("check", help="recompute a curriculum's state_id")
    check.add_argument("file", type=Path)
    check.set_defaults(func=run_check)

    show = commands.add_parser("treatment", help="what a group of rollouts sees")
    show.add_argument("file", type=Path)
    show.add_argument("--group", type=int, required=True)
    show.set_defaults(func=run_treatment)

    for command in (build, check, show):
        command.add_argument("--json", action="store_true", help="accepted: output is always JSON")


def run_build(args: argparse.Namespace) -> int:
    """Build, write and report a curriculum."""
    source_path = args.source_path
    if source_path is None and args.schema == "v1":
        source_path = str(args.bank.resolve())
    with typed_as(**FLAGS):
        q, record = args.q, None
        if args.q_max is not None:
            controller = Controller(args.q, args.q_max, args.q_step)
            gaps = [measured_gap(folder) for folder in args.gaps]
            q, record = controller.course(gaps)[-1], controller.record(gaps)
        curriculum = build_curriculum(
            load_bank(args.bank),
            round_id=args.round_id,
            skill_free_probability=q,
            expected_chunks=args.expected_chunks,
            q_controller=record,
            rho_min=args.rho_min,
            rho_max=args.rho_max,
            contribution_scale=args.scale,
            seed=args.seed,
            schema=args.schema,
            source_path=source_path,
        )
    write_curriculum(args.out, curriculum)
    chunks = [{"skill_id": key, "rho": value} for key, value in curriculum.rho.items()]
    _print({"state_id": curriculum.state_id, "q": q, "chunks": chunks, "path": str(args.out)})
    return 0


def run_check(args: argparse.Namespace) -> int:
    """Report whether a curriculum is whole; exit code 1 when it is not."""
    if not args.file.exists():
        raise InputError("no such file", file=args.file)
    try:
        curriculum = load_curriculum(args.file)
    except InputError as error:
        print(error, file=sys.stderr)
        _print({"ok": False, "state_id": None, "problem": str(error)})
        return 1
    _print({"ok": True, **curriculum.identity()})
    return 0


def run_treatment(args: argparse.Namespace) -> int:
    """Report the treatment of one group. Raises InputError for a number that no group has."""
    if args.group < 0:
        raise InputError(
            "no group has this number",
            field="--group",
            value=args.group,
            remedy="Groups are numbered from 0",
        )
    given = treatment(load_curriculum(args.file), args.group)
    _print({"mode": given.mode, "skill_ids": list(given.skill_ids), "group": args.group})
    return 0


def _print(value: object) -> None:
    print(json.dumps(value, ensure_ascii=False))
