"""A world: one profile over one catalogue, with tasks and splits. Read-only, shared by sessions."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from functools import lru_cache
from numbers import Integral
from pathlib import Path
from types import MappingProxyType
from typing import Any

from trainer.errors import InputError
from trainer.shop import observation
from trainer.shop.catalogue import Catalogue
from trainer.shop.language import WordLanguage
from trainer.shop.pages import ProductPage
from trainer.shop.price import PriceResolution, PriceTable
from trainer.shop.profiles import ShopProfile, profile_named
from trainer.shop.renderers import RENDERERS, KeptTexts
from trainer.shop.splits import checked_splits
from trainer.shop.sponsored import SponsoredPlaces
from trainer.shop.terms import term_extractor
from trainer.shop.tokens import tokenise
from trainer.shop.types import Notice, Product, Task

#: queries of more tokens are never repeated, but would fill the cache with megabytes
_MOST_KEPT = 200


class World:
    """Everything an episode reads and nothing it changes."""

    def __init__(
        self,
        profile: ShopProfile,
        catalogue: Catalogue,
        tasks: Mapping[int, Task],
        splits: Mapping[str, tuple[int, ...]],
        *,
        language: WordLanguage | None = None,
        notices: Sequence[Notice] = (),
    ) -> None:
        self.profile = profile
        self.catalogue = catalogue
        self.tasks = MappingProxyType(dict(tasks))
        self.language = language
        #: what the loader found useless in the data
        self.notices = tuple(notices)
        self.type_terms = term_extractor(profile.type_terms)
        self._renderer = RENDERERS[profile.renderer]
        self._splits = dict(splits)
        self.page = lru_cache(maxsize=4096)(self._page)
        # Every page shows products: their summaries, texts and prices are made once, here.
        self._summaries = {
            asin: observation.summary(product, profile)
            for asin, product in catalogue.products.items()
        }
        self._prices = {
            asin: PriceTable.of(product) for asin, product in catalogue.products.items()
        }
        self._texts = KeptTexts(self._renderer.fresh, {} if language else self._summaries)
        self._sponsored = (
            SponsoredPlaces(
                catalogue.products.values(),
                every=profile.sponsored_every,
                page_size=profile.page_size,
            )
            if profile.sponsored_every
            else None
        )
        self._kept_results = lru_cache(maxsize=8192)(self._results)
        self._instructions = {task.asin: task.instruction for task in self.tasks.values()}

    def identity(self) -> dict[str, Any]:
        """What identifies the environment: the profile's identifiers and the catalogue's hash."""
        return {
            **self.profile.identity(),
            "catalogue_sha256": self.catalogue.sha256,
            "product_count": len(self.catalogue),
            "task_count": len(self.tasks),
        }

    def split(self, name: str) -> tuple[int, ...]:
        """Ascending task ids of a split. Raises InputError that lists the known names."""
        try:
            return self._splits[name]
        except KeyError:
            raise InputError(
                "unknown split",
                field="split",
                value=name,
                remedy=f"Known splits: {', '.join(self._splits)}",
            ) from None

    def task(self, task_id: int) -> Task:
        """The task. Raises InputError for an unknown id."""
        # True and 1.0 are no names of task 1; a NumPy integer is.
        given: object = task_id  # of an agent's harness, so of any type
        task = None
        if not isinstance(given, bool) and isinstance(given, Integral):
            task = self.tasks.get(int(given))
        if task is None:
            raise InputError(
                "unknown task",
                field="task_id",
                value=task_id,
                remedy=f"The world has {len(self.tasks)} tasks; see World.tasks",
            )
        return task

    def summary(self, asin: str) -> dict[str, Any]:
        """A product as result lists show it; shared, so read-only."""
        return self._summaries[asin]

    def _page(self, asin: str) -> ProductPage:
        """The prepared page of a product of the catalogue."""
        return ProductPage.of(
            self.catalogue.products[asin],
            self.summary(asin),
            self._prices[asin],
            values_shown=self.profile.values_shown_per_axis,
        )

    def search(self, query: str) -> tuple[str, ...]:
        """Product ids, best first, at most ``top_k``. Queries of equal tokens are answered once."""
        tokens = tokenise(query)
        return (self._kept_results if len(tokens) <= _MOST_KEPT else self._results)(tokens)

    def _results(self, tokens: tuple[str, ...]) -> tuple[str, ...]:
        limit = self.profile.top_k
        results = self.catalogue.index.ids(tokens, limit)
        return self._sponsored.place(tokens, results, limit) if self._sponsored else results

    def render(self, state: Mapping[str, Any]) -> str:
        """The observation text of a page."""
        if self.language is not None:
            return self.language.render(state)
        return self._renderer.render(state, self._texts)

    def purchase_record(
        self, product: Product, selected: Mapping[str, str], resolution: PriceResolution
    ) -> dict[str, Any]:
        """``purchase`` of a terminal reply."""
        listing = product.pricing[0] if product.pricing else None
        return {
            "asin": product.asin,
            "category": product.category,
            "name": product.title,
            "product_category": product.product_category,
            "instruction_text": self._instructions.get(product.asin, ""),
            "attributes": [*product.attributes, *product.hidden_attributes],
            "price": listing if resolution.price is None else resolution.price,
            "options": dict(selected),
        }

    def goal_record(self, task: Task) -> dict[str, Any]:
        """The private goal, as terminal replies carry it (environment.md §1.4)."""
        record = {
            "task_id": task.task_id,
            "task_uid": task.task_uid,
            "source_product_index": task.source_product_index,
            "asin": task.asin,
            "category": task.category,
            "name": task.name,
            "instruction_text": task.instruction,
            "instruction_simple": task.instruction_simple,
            "attributes": list(task.attributes),
            "price_upper": task.price_upper,
            "price_constraint": None,
            "goal_options": list(task.goal_options),
            "user_persona": dict(task.persona),
            "reason_key": None,
            "weight": 1,
        }
        if self.profile.reports_budget_rule:
            record["price_source"] = task.price_source
        return record


def load_world(
    profile: str | ShopProfile,
    *,
    catalogue: Path | None = None,
    splits: Path | None = None,
    expected_sha256: str | None = None,
) -> World:
    """The world of ``profile``: its built-in catalogue, or the published-schema file ``catalogue``.

    ``splits`` is a split file for that catalogue, ``expected_sha256`` the hash of its decompressed
    JSON. Raises InputError for an unknown profile or an unusable file.
    """
    settings = profile_named(profile) if isinstance(profile, str) else profile
    if catalogue is None:
        _refuse_without_catalogue(splits=splits, expected_sha256=expected_sha256)
    if settings.name == "mini":
        if catalogue is not None:
            raise InputError(
                "the mini profile generates its catalogue",
                field="catalogue",
                value=str(catalogue),
                remedy="Leave it out, or choose another profile",
            )
        from trainer.shop.mini.world import build_world

        return build_world(settings)
    if catalogue is None:
        from trainer.shop.bundled import bundled_data, shares

        data = bundled_data(settings)
        return World(settings, data.catalogue, data.tasks, shares(data.tasks))
    from trainer.shop.records import load_archive

    data = load_archive(catalogue, settings, expected_sha256=expected_sha256)
    world = World(
        settings,
        data.catalogue,
        data.tasks,
        checked_splits(splits, data.tasks, catalogue=catalogue.name),
        notices=data.notices,
    )
    gc.collect()
    gc.freeze()  # millions of objects that stay: the collector need not walk them ever again
    return world


def _refuse_without_catalogue(**of_a_file: object) -> None:
    """What belongs to a catalogue file says nothing about a built-in one."""
    for name, value in of_a_file.items():
        if value is not None:
            raise InputError(
                "belongs to a catalogue file, and none was named",
                field=name,
                value=str(value),
                remedy="Name the file as the catalogue too, or leave this out",
            )
