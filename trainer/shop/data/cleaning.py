"""Cleaning: raw archive → cleaned archive, exclusions and manifest (environment.md §1.7).

Tasks are numbered before anything is dropped, so an id never depends on the filter. The output is
byte-identical for equal input; the source archive is never touched.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainer.canonical import canonical_json, fingerprint, sha256_file
from trainer.errors import InputError
from trainer.files import write_bytes, write_json
from trainer.shop.archive import Archive
from trainer.shop.data.annotation import Annotation
from trainer.shop.data.build_splits import PersonaTask, SplitPolicy, build_splits, persona_tasks
from trainer.shop.price import PriceTable
from trainer.shop.raw import RawRecord
from trainer.shop.records import product_of

SCHEMA_VERSION = "shopsimulator-cleaned-v2"
FILTER_VERSION = "single-price-axis-v1"
MAX_PRICE_AXES = 1

ARCHIVE_NAME = "catalogue.cleaned.json.gz"
EXCLUSIONS_NAME = "exclusions.json"
MANIFEST_NAME = "manifest.json"
SPLITS_NAME = "splits.json"


def task_uid(asin: str, instruction_index: int, instruction: str) -> str:
    """The id of a task by its content."""
    text = json.dumps(
        [asin, instruction_index, instruction], ensure_ascii=False, separators=(",", ":")
    )
    return f"shopsim-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


@dataclass(slots=True)
class Cleaner:
    """Cleans records one by one and remembers what it dropped."""

    annotations: Mapping[int, Annotation] = field(default_factory=dict)
    file: Path | None = None
    exclusions: list[dict[str, Any]] = field(default_factory=list)
    products: int = 0
    tasks: int = 0
    persona_tasks: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    _next_task: int = 0

    def clean(self, records: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """Cleaned records, in file order."""
        for position, raw in enumerate(records):
            record = RawRecord(raw, position, self.file)
            tasks = [
                self._task(record, i, item) for i, item in enumerate(record.items("instructions"))
            ]
            axes = PriceTable.of(product_of(record)).axes
            if len(axes) > MAX_PRICE_AXES:
                self.exclusions.append(
                    {
                        "source_product_index": position,
                        "asin": record.text("asin"),
                        "task_ids": [task["task_id"] for task in tasks],
                        "reason": "multiple_price_affecting_axes",
                        "price_affecting_axes": list(axes),
                    }
                )
                continue
            self._count(tasks, bool(raw.get("user_persona")))
            yield {**raw, "source_product_index": position, "instructions": tasks}

    def _task(self, record: RawRecord, index: int, item: object) -> dict[str, Any]:
        source = record.inner(item, f"instructions[{index}]")
        has_persona = bool(record.mapping("user_persona"))
        if has_persona != ("instruction_simple" in source.raw):
            raise source.error(
                "instruction_simple", "must be there exactly when the product has a persona", None
            )
        if has_persona:
            source.text("instruction_simple")
        list(source.texts("attributes"))
        task_id = self._next_task
        self._next_task += 1
        task = {key: value for key, value in source.raw.items() if key != "price_constraint"}
        return {
            **task,
            "task_id": task_id,
            "task_uid": task_uid(record.text("asin"), index, source.text("instruction")),
            "instruction_index": index,
            "price_upper": self._ceiling(task_id, has_persona),
        }

    def _ceiling(self, task_id: int, has_persona: bool) -> float | None:
        annotation = self.annotations.get(task_id) if has_persona else None
        return annotation.ceiling if annotation else None

    def _count(self, tasks: list[dict[str, Any]], has_persona: bool) -> None:
        self.products += 1
        self.tasks += len(tasks)
        if not has_persona:
            return
        self.persona_tasks += len(tasks)
        for task in tasks:
            annotation = self.annotations.get(task["task_id"])
            kind = annotation.kind if annotation else "runtime_regex_fallback"
            self.kinds[kind] = self.kinds.get(kind, 0) + 1


def write_cleaned(
    source: Path,
    folder: Path,
    *,
    annotations: Mapping[int, Annotation] | None = None,
    annotator: Mapping[str, Any] | None = None,
    expected_sha256: str | None = None,
    policy: SplitPolicy | None = None,
) -> dict[str, Any]:
    """Clean ``source`` into ``folder``, with persona splits by ``policy``; returns the manifest.

    ``annotator`` identifies where the ceilings come from (model, prompt hash). Raises InputError
    for damaged or inconsistent data and impossible splits; then nothing is written."""
    if folder.resolve() == source.resolve().parent:
        raise InputError(
            "the output folder must not be the folder of the source archive",
            file=folder,
            remedy="Choose another folder",
        )
    archive = Archive(source, expected_sha256=expected_sha256)
    cleaner = Cleaner(annotations or {}, file=source)
    tasks: list[PersonaTask] = []
    data = archive_text(_seen(cleaner.clean(archive), tasks)).encode()
    zipped = gzipped(data)
    manifest: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "catalog_filter": {"version": FILTER_VERSION, "max_price_affecting_axes": MAX_PRICE_AXES},
        "product_count": cleaner.products,
        "task_count": cleaner.tasks,
        "persona_task_count": cleaner.persona_tasks,
        "excluded_product_count": len(cleaner.exclusions),
        "source_archive_sha256": sha256_file(source),
        "source_data_sha256": archive.sha256,
        "archive_sha256": hashlib.sha256(zipped).hexdigest(),
        "data_sha256": hashlib.sha256(data).hexdigest(),
        "exclusions_sha256": fingerprint(cleaner.exclusions),
        "price_annotation": {"annotator": annotator, "kinds": dict(sorted(cleaner.kinds.items()))},
    }
    splits = _splits(tasks, policy, manifest) if policy else None
    write_bytes(folder / ARCHIVE_NAME, zipped)
    write_json(folder / EXCLUSIONS_NAME, cleaner.exclusions)
    if splits is not None:
        manifest["splits_sha256"] = fingerprint(splits)
        manifest["splits"] = {name: s["task_count"] for name, s in splits["splits"].items()}
        write_json(folder / SPLITS_NAME, splits)
    write_json(folder / MANIFEST_NAME, manifest)  # last: where it is, everything is
    return manifest


def _seen(
    records: Iterable[dict[str, Any]], tasks: list[PersonaTask]
) -> Iterator[Mapping[str, Any]]:
    """The records, whose persona tasks are added to ``tasks`` on the way."""
    for record in records:
        tasks += persona_tasks([record])
        yield record


def _splits(
    tasks: Iterable[PersonaTask], policy: SplitPolicy, manifest: Mapping[str, Any]
) -> dict[str, Any]:
    source = {
        "cleaned_archive": ARCHIVE_NAME,
        "cleaned_archive_sha256": manifest["archive_sha256"],
        "cleaned_data_sha256": manifest["data_sha256"],
    }
    return build_splits(tasks, policy, source=source)


def archive_text(records: Iterable[Mapping[str, Any]]) -> str:
    """Records as one canonical JSON array and a trailing newline."""
    return "[" + ",".join(map(canonical_json, records)) + "]\n"


def write_archive(path: Path, records: Iterable[Mapping[str, Any]]) -> str:
    """Publish records as an archive, zipped by suffix ``.gz``; SHA-256 of the JSON."""
    data = archive_text(records).encode()
    write_bytes(path, gzipped(data) if path.suffix == ".gz" else data)
    return hashlib.sha256(data).hexdigest()


def gzipped(data: bytes) -> bytes:
    """Gzip without name and time, so that equal data has equal bytes."""
    target = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=target, mtime=0) as stream:
        stream.write(data)
    return target.getvalue()
