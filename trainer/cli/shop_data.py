"""Handlers of the ``shop`` commands that prepare and judge data; the parser is in ``shop.py``."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from pathlib import Path

from trainer.cli.main import print_json
from trainer.errors import InputError
from trainer.shop.archive import PUBLISHED_SHA256
from trainer.shop.world import World, load_world

_REMEDIES = {
    "product_skipped": "Give each product an id of its own, at most 20 characters long",
    "axis_without_values": "These products can never be bought: give the axis values, or null",
    "task_without_attributes": "These tasks were left out: give them target attributes",
}


def world_of(args: argparse.Namespace, profile: str) -> World:
    """The world that the options name; what is useless in its data goes to stderr."""
    world = load_world(
        profile,
        catalogue=args.catalogue,
        splits=args.splits,
        expected_sha256=known_hash(args.catalogue_sha256, "--catalogue-sha256"),
    )
    for code, count in sorted(Counter(notice.code for notice in world.notices).items()):
        first = next(notice for notice in world.notices if notice.code == code)
        place = f"[{first.record}] {first.asin} {first.detail}".rstrip()
        print(
            f"{args.catalogue}: {code}: {count} records, first {place}. {_REMEDIES[code]}",
            file=sys.stderr,
        )
    return world


def known_hash(text: str | None, field: str) -> str | None:
    """A hash, or the published one that ``text`` names."""
    if text is None:
        return None
    found = PUBLISHED_SHA256.get(text, text.lower())
    if not re.fullmatch(r"[0-9a-f]{64}", found):
        raise InputError(
            "neither a SHA-256 (64 hexadecimal digits) nor the name of a published one",
            field=field,
            value=text,
            remedy=f"Known names: {', '.join(PUBLISHED_SHA256)}",
        )
    return found


def read_secret(variable: str | None) -> str | None:
    """The content of an environment variable that must be set when it is named."""
    if variable is None:
        return None
    value = os.environ.get(variable)
    if not value:
        raise InputError(
            "the environment variable is empty or not set",
            field=variable,
            remedy="Set it to the token, or leave the option out",
        )
    return value


def check_output(path: Path, field: str, *, folder: bool = False) -> None:
    """Refuse an output that would replace something of another kind: a folder, a device, a file
    where a folder must be."""
    if path.exists() and not (path.is_dir() if folder else path.is_file()):
        raise InputError(
            f"exists and is not a {'folder' if folder else 'file'}",
            field=field,
            value=str(path),
            remedy=f"Name a new {'folder' if folder else 'file'}, or one that may be overwritten",
        )


def run_audit(args: argparse.Namespace) -> int:
    """Count winnable tasks and name those that nothing wins."""
    from trainer.shop.data.audit import audit

    world = world_of(args, args.profile)
    task_ids = world.split(args.split) if args.split else tuple(sorted(world.tasks))
    notices = Counter(notice.code for notice in world.notices)
    print_json(
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

    check_output(args.out, "out")
    settings = SyntheticSettings(products=args.products, seed=args.seed, noise=args.noise)
    sha256 = write_archive(args.out, generate_records(settings))
    print_json({"products": args.products, "data_sha256": sha256, "file": str(args.out)})
    return 0


def run_clean(args: argparse.Namespace) -> int:
    """Clean a raw archive, build the persona splits, write everything with a manifest."""
    from trainer.shop.data.annotation import load_annotations
    from trainer.shop.data.build_splits import SplitPolicy
    from trainer.shop.data.cleaning import write_cleaned

    check_output(args.out, "out", folder=True)
    policy = SplitPolicy(
        seed=args.seed, validation_size=args.validation_size, test_size=args.test_size
    )
    annotations, annotator = load_annotations(args.annotations) if args.annotations else ({}, None)
    manifest = write_cleaned(
        args.source,
        args.out,
        annotations=annotations,
        annotator=annotator,
        expected_sha256=known_hash(args.sha256, "--sha256"),
        policy=policy,
    )
    print_json(manifest)
    return 0


def run_annotate(args: argparse.Namespace) -> int:
    """Annotate every persona task; finished answers survive an interruption."""
    from trainer.files import write_json
    from trainer.shop.archive import Archive
    from trainer.shop.data.annotate import (
        AnnotatorIdentity,
        PriceAnnotator,
        openai_ask,
        persona_texts,
    )

    check_output(args.out, "out")
    if args.workers < 1:
        raise InputError(
            "needs at least one", field="--workers", value=args.workers, remedy="Choose 8"
        )
    if not args.base_url.startswith(("http://", "https://")):
        raise InputError(
            "must be an http or https address",
            field="--base-url",
            value=args.base_url,
            remedy="Write it as http://host:30000/v1",
        )
    key = read_secret(args.api_key_env)
    archive = Archive(args.source)
    tasks = list(persona_texts(archive))
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
    print_json({"annotations": len(found), "file": str(args.out)})
    return 0
