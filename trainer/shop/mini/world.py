"""The embedded world, put together: generated catalogue, shipped tasks, word language.

The catalogue is generated at every start (a third of a second). Drawing the tasks plays ten
thousand episodes, so their result is shipped beside the code, with the hash of the catalogue it
belongs to; ``generate.py`` draws them again and a test compares.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from trainer.errors import InputError
from trainer.shop.catalogue import Catalogue
from trainer.shop.mini.catalogue import CATALOGUE_SEED, generate_products
from trainer.shop.mini.language import MiniLanguage
from trainer.shop.mini.tasks import SPLITS, task_from_record
from trainer.shop.profiles import MINI, ShopProfile
from trainer.shop.types import Task
from trainer.shop.world import World

TASKS_FILE = Path(__file__).with_name("tasks.json.gz")
TASKS_SCHEMA = "intraskill-mini-tasks-v1"


class DraftWorld(World):
    """A world that lends itself to tasks outside its splits, one at a time."""

    draft: Task

    def task(self, task_id: int) -> Task:
        return self.draft


def build_world(profile: ShopProfile = MINI) -> World:
    """The ``mini`` world with all splits. Raises InputError when the shipped tasks do not fit."""
    catalogue = _catalogue(profile)
    splits = read_tasks(catalogue)
    return World(
        profile,
        catalogue,
        {task.task_id: task for tasks in splits.values() for task in tasks},
        {name: tuple(task.task_id for task in tasks) for name, tasks in splits.items()},
        language=MiniLanguage(),
    )


def draft_world(profile: ShopProfile = MINI) -> DraftWorld:
    """The world without tasks, for drawing new ones."""
    return DraftWorld(profile, _catalogue(profile), {}, {}, language=MiniLanguage())


def read_tasks(catalogue: Catalogue, path: Path = TASKS_FILE) -> dict[str, tuple[Task, ...]]:
    """The shipped splits. Raises InputError when they belong to another catalogue."""
    document = json.loads(gzip.decompress(path.read_bytes()))
    found = document["schema_version"], document["catalogue_sha256"]
    if found != (TASKS_SCHEMA, catalogue.sha256):
        raise InputError(
            "the shipped tasks belong to another catalogue",
            file=path,
            field="catalogue_sha256",
            value=found,
            remedy="Draw them again: python -m trainer.shop.mini.generate",
        )
    return {
        split.name: tuple(
            task_from_record(record, catalogue.products)
            for record in document["splits"][split.name]
        )
        for split in SPLITS
    }


def _catalogue(profile: ShopProfile) -> Catalogue:
    return Catalogue.from_products(
        generate_products(), profile, source=f"generated:mini:{CATALOGUE_SEED}"
    )
