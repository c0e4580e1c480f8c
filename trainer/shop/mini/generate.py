"""Draw the tasks of the embedded world and write them beside the code.

``python -m trainer.shop.mini.generate [FILE]``; seconds. The file depends on the code alone.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

from trainer.canonical import canonical_json
from trainer.files import write_bytes
from trainer.shop.mini.episodes import solver
from trainer.shop.mini.tasks import generate_splits, task_record
from trainer.shop.mini.world import TASKS_FILE, TASKS_SCHEMA, draft_world
from trainer.shop.types import Task


def draw_splits() -> tuple[dict[str, tuple[Task, ...]], str]:
    """All splits by name, and the hash of the catalogue they belong to."""
    world = draft_world()
    products = list(world.catalogue.products.values())
    return generate_splits(products, solver(world)), world.catalogue.sha256


def tasks_document(splits: dict[str, tuple[Task, ...]], catalogue_sha256: str) -> bytes:
    """The file's bytes: canonical JSON under gzip without name or time."""
    text = canonical_json(
        {
            "schema_version": TASKS_SCHEMA,
            "catalogue_sha256": catalogue_sha256,
            "splits": {name: [task_record(task) for task in splits[name]] for name in splits},
        }
    )
    packed = bytearray(gzip.compress(text.encode(), compresslevel=9, mtime=0))
    packed[9] = 3  # the system that packed it: Python 3.13 writes "unknown", earlier ones "Unix"
    return bytes(packed)


def main(path: Path = TASKS_FILE) -> None:
    """Write the tasks to ``path``."""
    write_bytes(path, tasks_document(*draw_splits()))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
