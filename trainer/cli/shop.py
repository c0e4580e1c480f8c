"""``python -m trainer shop …``: serve, replay, audit and prepare the shopping environment."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from trainer.errors import InputError
from trainer.shop.profiles import PROFILES


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command group to the trainer's parser."""
    group = subparsers.add_parser("shop", help="serve, replay and audit the shop; prepare its data")
    commands = group.add_subparsers(dest="shop_command", required=True)
    _add_replay(commands)
    _add_audit(commands)
    _add_generate(commands)
    _add_clean(commands)
    _add_annotate(commands)
    for command in commands.choices.values():
        command.add_argument("--json", action="store_true", help="accepted: output is always JSON")


def _add_world(parser: argparse.ArgumentParser, *, default: str | None) -> None:
    parser.add_argument("--profile", choices=sorted(PROFILES), default=default)
    parser.add_argument("--catalogue", type=Path, help="catalogue file (default: the built-in one)")
    parser.add_argument("--splits", type=Path, help="split file that belongs to the catalogue")


def _add_replay(commands: Any) -> None:
    parser = commands.add_parser("replay", help="step through finished traces again and compare")
    parser.add_argument("trace", type=Path, help="JSON lines of traces, plain or gzip")
    parser.add_argument("--episode", help="only the episode with this id")
    _add_world(parser, default=None)
    parser.set_defaults(func=run_replay)


def _add_audit(commands: Any) -> None:
    parser = commands.add_parser("audit", help="count the tasks that can be won at all")
    parser.add_argument("--split", help="split to audit (default: every task)")
    _add_world(parser, default="standard")
    parser.set_defaults(func=run_audit)


def _add_generate(commands: Any) -> None:
    parser = commands.add_parser("generate", help="write a synthetic raw catalogue")
    parser.add_argument("out", type=Path, help="file to write, .json or .json.gz")
    parser.add_argument("--products", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--noise", type=float, default=0.0, help="probability of each noise kind")
    parser.set_defaults(func=run_generate)


def _add_clean(commands: Any) -> None:
    parser = commands.add_parser("clean", help="clean a raw archive and build its splits")
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path, help="folder for archive, exclusions, splits, manifest")
    parser.add_argument("--sha256", help="expected SHA-256 of the decompressed raw data")
    parser.add_argument("--annotations", type=Path, help="result of `shop annotate`")
    parser.add_argument("--validation-size", type=int, default=400)
    parser.add_argument("--test-size", type=int, default=400)
    parser.add_argument("--seed", type=int, default=20260829)
    parser.set_defaults(func=run_clean)


def _add_annotate(commands: Any) -> None:
    parser = commands.add_parser("annotate", help="ask a model for the ceilings of persona tasks")
    parser.add_argument("source", type=Path, help="raw archive")
    parser.add_argument("out", type=Path, help="annotations file; its cache stands beside it")
    parser.add_argument("--base-url", required=True, help="OpenAI-compatible endpoint")
    parser.add_argument("--model", required=True)
    parser.add_argument("--api-key-env", help="environment variable that holds the key")
    parser.add_argument("--workers", type=int, default=8)
    parser.set_defaults(func=run_annotate)


def _print(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, allow_nan=False))


def _world(args: argparse.Namespace, profile: str) -> Any:
    from trainer.shop.world import load_world

    return load_world(profile, catalogue=args.catalogue, splits=args.splits)


def run_replay(args: argparse.Namespace) -> int:
    """Replay until the first difference. Exit code 1 when there is one."""
    from trainer.shop.replay import read_traces, replay

    world = None
    episodes = steps = 0
    for trace in read_traces(args.trace):
        if args.episode and trace.get("episode_id") != args.episode:
            continue
        if world is None:
            recorded = trace.get("provenance", {}).get("environment", {})
            world = _world(args, args.profile or recorded.get("profile", "compat"))
        episodes += 1
        steps += len(trace["steps"])
        difference = replay(world, trace)
        if difference is not None:
            _print({"ok": False, "episodes": episodes, "first_difference": difference.to_record()})
            return 1
    if not episodes:
        raise InputError("no such episode", file=args.trace, field="--episode", value=args.episode)
    _print({"ok": True, "episodes": episodes, "steps": steps, "first_difference": None})
    return 0


def run_audit(args: argparse.Namespace) -> int:
    """Count winnable tasks and name those that nothing wins."""
    from trainer.shop.data.audit import audit

    world = _world(args, args.profile)
    task_ids = world.split(args.split) if args.split else tuple(sorted(world.tasks))
    _print({"environment": world.identity(), "split": args.split, **audit(world, task_ids)})
    return 0


def run_generate(args: argparse.Namespace) -> int:
    """Write a synthetic raw catalogue."""
    from trainer.shop.data.cleaning import write_archive
    from trainer.shop.synthetic import SyntheticSettings, generate_records

    settings = SyntheticSettings(products=args.products, seed=args.seed, noise=args.noise)
    sha256 = write_archive(args.out, generate_records(settings))
    _print({"products": args.products, "data_sha256": sha256, "file": str(args.out)})
    return 0


def run_clean(args: argparse.Namespace) -> int:
    """Clean a raw archive, build the persona splits, write everything with a manifest."""
    from trainer.files import read_json, write_json
    from trainer.shop.archive import Archive
    from trainer.shop.data import build_splits, cleaning
    from trainer.shop.data.annotation import Annotation

    annotations, annotator = {}, None
    if args.annotations:
        document = read_json(args.annotations)
        annotator = document["annotator"]
        annotations = {row["task_id"]: Annotation(**row) for row in document["annotations"]}
    manifest = cleaning.write_cleaned(
        args.source,
        args.out,
        annotations=annotations,
        annotator=annotator,
        expected_sha256=args.sha256,
    )
    policy = build_splits.SplitPolicy(
        seed=args.seed, validation_size=args.validation_size, test_size=args.test_size
    )
    tasks = build_splits.persona_tasks(Archive(args.out / cleaning.ARCHIVE_NAME))
    source = {
        "cleaned_archive": cleaning.ARCHIVE_NAME,
        "cleaned_archive_sha256": manifest["archive_sha256"],
        "cleaned_data_sha256": manifest["data_sha256"],
    }
    splits = build_splits.build_splits(tasks, policy, source=source)
    write_json(args.out / "splits.json", splits)
    counts = {name: split["task_count"] for name, split in splits["splits"].items()}
    _print({**manifest, "splits": counts})
    return 0


def run_annotate(args: argparse.Namespace) -> int:
    """Annotate every persona task; finished answers survive an interruption."""
    from trainer.files import write_json
    from trainer.shop.archive import Archive
    from trainer.shop.data.annotate import AnnotatorIdentity, PriceAnnotator, openai_ask

    key = None
    if args.api_key_env:
        key = os.environ.get(args.api_key_env)
        if key is None:
            raise InputError("the variable is not set", field=args.api_key_env)
    archive = Archive(args.source)
    tasks = [
        (number, task["instruction_simple"], task["instruction"])
        for number, (record, task) in enumerate(
            (record, task) for record in archive for task in record["instructions"]
        )
        if record.get("user_persona")
    ]
    identity = AnnotatorIdentity(archive.sha256, args.base_url, args.model)
    cache = args.out.with_suffix(".cache.jsonl")
    annotator = PriceAnnotator(openai_ask(args.base_url, args.model, key), identity, cache)
    found = annotator.annotate(tasks, workers=args.workers)
    write_json(
        args.out,
        {
            "annotator": identity.record(),
            "annotations": [annotation.to_record() for annotation in found.values()],
        },
    )
    _print({"annotations": len(found), "file": str(args.out)})
    return 0
