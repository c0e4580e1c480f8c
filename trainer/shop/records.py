"""From records of the published schema to products and tasks (environment.md §1.2, §1.3).

Every record is checked once, here. What the published loader leaves out silently (a task without
attributes, an axis without values) is left out here too, and reported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.shop.archive import Archive
from trainer.shop.budget import budget_parser
from trainer.shop.catalogue import Catalogue, Document
from trainer.shop.goals import GoalReader
from trainer.shop.price import normalise_option
from trainer.shop.profiles import ShopProfile
from trainer.shop.raw import RawRecord, finite_number
from trainer.shop.tokens import models, tokenise
from trainer.shop.types import Notice, Product, Task

LONGEST_ASIN = 20
DEFAULT_PRICE = 100.0


@dataclass(frozen=True, slots=True)
class PublishedData:
    """A loaded catalogue with its tasks and what was found wrong in it."""

    catalogue: Catalogue
    tasks: Mapping[int, Task]
    notices: tuple[Notice, ...] = ()


def load_archive(
    path: Path, profile: ShopProfile, *, expected_sha256: str | None = None
) -> PublishedData:
    """Load a catalogue file. Raises InputError naming file, record and field."""
    archive = Archive(path, expected_sha256=expected_sha256)
    reader = RecordReader(profile, file=path)
    catalogue = Catalogue.of(reader.read(archive), profile, source=path.name)
    return PublishedData(catalogue.identified(archive.sha256), reader.tasks, tuple(reader.notices))


def load_records(
    records: Iterable[Mapping[str, Any]], profile: ShopProfile, *, sha256: str, source: str
) -> PublishedData:
    """The same for records in memory, identified by ``sha256``."""
    reader = RecordReader(profile)
    catalogue = Catalogue.of(reader.read(records), profile, source=source)
    return PublishedData(catalogue.identified(sha256), reader.tasks, tuple(reader.notices))


class RecordReader:
    """Turns records into products with search documents; collects tasks and notices on the way."""

    def __init__(self, profile: ShopProfile, *, file: Path | None = None) -> None:
        self.notices: list[Notice] = []
        self._file = file
        self._goals = GoalReader(budget_parser(profile.budget_parser))
        self._seen: set[str] = set()

    @property
    def tasks(self) -> dict[int, Task]:
        return self._goals.tasks

    def read(self, records: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Product, Document]]:
        """Products in file order; unusable records are skipped with a notice."""
        for position, raw in enumerate(records):
            record = RawRecord(raw, position, self._file)
            asin = record.optional_text("asin").strip()
            if asin in ("", "nan") or len(asin) > LONGEST_ASIN or asin in self._seen:
                self._note("product_skipped", record, asin)
                continue
            self._seen.add(asin)
            product = product_of(record)
            empty = [axis for axis, values in product.options.items() if not values]
            if empty:
                self._note("axis_without_values", record, asin, ", ".join(empty))
            if not self._goals.add(product, record):
                self._note("task_without_attributes", record, asin)
            yield product, document_of_record(record)

    def _note(self, code: str, record: RawRecord, asin: str, detail: str = "") -> None:
        self.notices.append(Notice(code, record.position, asin, detail))


def product_of(record: RawRecord) -> Product:
    """The product a record describes (environment.md §1.3)."""
    options, prices = _options(record)
    bullets = record.raw.get("small_description") or [""]
    title = record.text("title")
    description = record.optional_text("full_description")
    return Product(
        asin=record.text("asin").strip(),
        title=title,
        brand=sys.intern(record.optional_text("shop_name")),
        category=sys.intern(record.optional_text("category")),
        attributes=tuple(record.texts("attribute")),
        options=options,
        option_prices=prices,
        pricing=_pricing(record),
        bullets=tuple(map(str, bullets if isinstance(bullets, list) else [bullets])),
        description=title if description == title else description,
        product_category=record.optional_text("product_category"),
    )


def _options(
    record: RawRecord,
) -> tuple[dict[str, tuple[str, ...]], dict[str, dict[str, float | None]]]:
    options: dict[str, tuple[str, ...]] = {}
    prices: dict[str, dict[str, float | None]] = {}
    for axis, entries in record.axes():
        by_value: dict[str, float | None] = {}
        for entry in entries:
            by_value[normalise_option(entry.value())] = entry.price()
        values = [shown_value(entry.value()) for entry in entries]
        options[axis] = tuple(dict.fromkeys(values))
        prices[axis] = {value: by_value[normalise_option(value)] for value in options[axis]}
    return options, prices


def shown_value(value: str) -> str:
    """An option value as pages show it: stripped, ``/`` spaced as a bar, lower case."""
    return sys.intern(value.strip().replace("/", " | ").lower())


def _pricing(record: RawRecord) -> tuple[float, ...]:
    prices = record.raw.get("pricing") or [DEFAULT_PRICE]
    if not isinstance(prices, list) or not all(map(finite_number, prices)):
        raise record.error("pricing", "a price list holds one or two finite numbers", prices)
    return tuple(prices[:2])


def document_of_record(record: RawRecord) -> Document:
    """The search document: source texts, not the shown ones (environment.md §3.1)."""
    raw = record.raw
    title = record.text("title")
    options = [
        text
        for axis, entries in sorted(record.axes(), key=lambda item: item[0])
        for text in (axis.strip(), *(entry.value().strip() for entry in entries))
    ]
    bullets = next(
        (raw[key] for key in ("small_description", "sub_title", "BulletPoints") if raw.get(key)), ""
    )
    return (
        tokenise(title),
        tokenise(record.optional_text("brand") or record.optional_text("shop_name")),
        tokenise(record.optional_text("category") or record.optional_text("product_category")),
        models(title),
        tokenise(" ".join(flatten(raw.get("attribute")))),
        tokenise(" ".join(options)),
        tokenise(" ".join(flatten(bullets))),
    )


def flatten(value: object) -> Iterator[str]:
    """All texts of a nested value; keys of objects in sorted order, before their values."""
    if isinstance(value, Mapping):
        for key in sorted(value):
            yield str(key)
            yield from flatten(value[key])
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from flatten(item)
    elif value is not None:
        yield str(value)
