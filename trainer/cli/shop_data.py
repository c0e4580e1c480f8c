"""Handlers of the ``shop`` commands that prepare and judge data; the parser is in ``shop.py``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from typing import Any

from trainer.errors import InputError
from trainer.shop.archive import PUBLISHED_SHA256
from trainer.shop.world import World, load_world


def print_result(value: Any) -> None:
    """One JSON object on one line of stdout."""
    print(json.dumps(value, ensure_ascii=False, allow_nan=False), flush=True)


def world_of(args: argparse.Namespace, profile: str) -> World:
    """The world that the options name; what is useless in its data goes to stderr."""
    world = load_world(
        profile,
        catalogue=args.catalogue,
        splits=args.splits,
        expected_sha256=known_hash(args.catalogue_sha256),
    )
    for code, count in sorted(Counter(notice.code for notice in world.notices).items()):
        first = next(notice for notice in world.notices if notice.code == code)
        print(
            f"{args.catalogue}: {code}: {count} records, first [{first.record}] {first.asin}"
            f" {first.detail}".rstrip(),
            file=sys.stderr,
        )
    return world


def known_hash(text: str | None) -> str | None:
    """A hash, or the published one that ``text`` names."""
    return PUBLISHED_SHA256.get(text, text) if text else None


def read_secret(variable: str | None) -> str | None:
    """The content of an environment variable that must be set when it is named."""
    if variable is None:
        return None
    value = os.environ.get(variable)
    if not value:
        raise InputError("the environment variable is empty or not set", field=variable)
    return value


def run_audit(args: argparse.Namespace) -> int:
    """Count winnable tasks and name those that nothing wins."""
    from trainer.shop.data.audit import audit

    world = world_of(args, args.profile)
    task_ids = world.split(args.split) if args.split else tuple(sorted(world.tasks))
    notices = Counter(notice.code for notice in world.notices)
    print_result(
        {
            "environment": world.identity(),
            "split": args.split,
            **audit(world, task_ids),
            "notices": dict(sorted(notices.items())),
        }
    )
    return 0


def run_generate(args: argparse.Namespace) -> int:
    """Write a synthetic raw catalogue."""
    from trainer.shop.data.cleaning import write_archive
    from trainer.shop.synthetic import SyntheticSettings, generate_records

    settings = SyntheticSettings(products=args.products, seed=args.seed, noise=args.noise)
    sha256 = write_archive(args.out, generate_records(settings))
    print_result({"products": args.products, "data_sha256": sha256, "file": str(args.out)})
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
        expected_sha256=known_hash(args.sha256),
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
    print_result({**manifest, "splits": counts})
    return 0


def run_annotate(args: argparse.Namespace) -> int:
    """Annotate every persona task; finished answers survive an interruption."""
    from trainer.files import write_json
    from trainer.shop.archive import Archive
    from trainer.shop.data.annotate import AnnotatorIdentity, PriceAnnotator, openai_ask

    key = read_secret(args.api_key_env)
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
    print_result({"annotations": len(found), "file": str(args.out)})
    return 0
