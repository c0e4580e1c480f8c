"""The embedded world, put together: generated catalogue, generated tasks, word language."""

from __future__ import annotations

from trainer.shop.catalogue import Catalogue
from trainer.shop.mini.catalogue import CATALOGUE_SEED, generate_products
from trainer.shop.mini.episodes import DraftWorld, solver
from trainer.shop.mini.language import MiniLanguage
from trainer.shop.mini.tasks import generate_splits
from trainer.shop.profiles import MINI, ShopProfile
from trainer.shop.world import World


def build_world(profile: ShopProfile = MINI) -> World:
    """The ``mini`` world with all splits. Deterministic; a test holds its hashes."""
    draft = draft_world(profile)
    splits = generate_splits(list(draft.catalogue.products.values()), solver(draft))
    return World(
        profile,
        draft.catalogue,
        {task.task_id: task for tasks in splits.values() for task in tasks},
        {name: tuple(task.task_id for task in tasks) for name, tasks in splits.items()},
        language=MiniLanguage(),
    )


def draft_world(profile: ShopProfile = MINI) -> DraftWorld:
    """The world without tasks, for drawing new ones."""
    catalogue = Catalogue.from_products(
        generate_products(), profile, source=f"generated:mini:{CATALOGUE_SEED}"
    )
    return DraftWorld(profile, catalogue, {}, {}, language=MiniLanguage())
