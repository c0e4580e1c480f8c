"""Split files at run time: which tasks belong to train, val and test (environment.md §1.8).

A split names its tasks by explicit ids or by a half-open range. Its identity is the SHA-256 of the
ascending id list as compact JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.errors import InputError
from trainer.files import read_json

SCHEMA_VERSION = "shopsimrl-persona-splits-v1"
#: a range is kept as ids, so its end must be one that a catalogue can have
_LARGEST_ID = 10**7
_REMEDY = "Use the split file that belongs to the catalogue, or make one with `shop clean`"


def task_ids_sha256(task_ids: Iterable[int]) -> str:
    """Identity of a set of tasks."""
    text = json.dumps(sorted(task_ids), separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True)
class Split:
    """One split. ``persona`` says whether its tasks show the persona; None leaves it open."""

    name: str
    task_ids: tuple[int, ...]
    persona: bool | None
    role: str = ""

    @property
    def sha256(self) -> str:
        return task_ids_sha256(self.task_ids)


@dataclass(frozen=True, slots=True)
class SplitFile:
    """All splits of a file, by name."""

    version: str
    splits: Mapping[str, Split]

    def split(self, name: str) -> Split:
        """The split called ``name``. Raises InputError that lists the names there are."""
        try:
            return self.splits[name]
        except KeyError:
            raise InputError(
                "unknown split",
                field="split",
                value=name,
                remedy=f"Available splits: {', '.join(self.splits)}",
            ) from None


def load_splits(path: Path) -> SplitFile:
    """Read a split file. Raises InputError naming the file and the field."""
    document = read_json(path)
    splits = document.get("splits") if isinstance(document, dict) else None
    if not isinstance(splits, dict) or not splits:
        raise InputError(
            "a split file has an object 'splits'", file=path, field="splits", remedy=_REMEDY
        )
    version = document.get("version", "")
    if not isinstance(version, str):
        raise InputError(
            "must be a text", file=path, field="version", value=version, remedy=_REMEDY
        )
    return SplitFile(version, {name: _split(name, raw, path) for name, raw in splits.items()})


def checked_splits(
    path: Path | None, task_ids: Collection[int], *, catalogue: str
) -> dict[str, tuple[int, ...]]:
    """The splits of a file, all of whose tasks ``catalogue`` must have.

    Without a file there is one split, ``all``, of every task.
    """
    if path is None:
        return {"all": tuple(sorted(task_ids))}
    splits = load_splits(path).splits
    for split in splits.values():
        unknown = [task_id for task_id in split.task_ids if task_id not in task_ids]
        if unknown:
            raise InputError(
                f"{len(unknown)} tasks of the split are not in {catalogue}",
                file=path,
                field=f"splits.{split.name}.task_ids",
                value=unknown[:5],
                remedy=_REMEDY,
            )
    return {name: split.task_ids for name, split in splits.items()}


def _split(name: str, raw: Any, path: Path) -> Split:
    where = f"splits.{name}"
    if not isinstance(raw, dict):
        raise InputError(
            "a split must be an object", file=path, field=where, value=raw, remedy=_REMEDY
        )
    persona = raw.get("persona")
    if persona not in (True, False, None) or isinstance(persona, int) != isinstance(persona, bool):
        raise InputError(
            "must be true, false or null",
            file=path,
            field=f"{where}.persona",
            value=persona,
            remedy=_REMEDY,
        )
    split = Split(name, _task_ids(raw, path, where), persona, str(raw.get("role", "")))
    stated = raw.get("task_ids_sha256")
    if stated is not None and stated != split.sha256:
        raise InputError(
            f"the ids do not have the stated hash {stated}",
            file=path,
            field=f"{where}.task_ids_sha256",
            value=split.sha256,
            remedy="The file was changed after it was made; fetch or rebuild it",
        )
    return split


def _task_ids(raw: Mapping[str, Any], path: Path, where: str) -> tuple[int, ...]:
    if "task_ids" in raw:
        ids = raw["task_ids"]
        if not isinstance(ids, list) or not all(map(_is_id, ids)) or len(set(ids)) != len(ids):
            raise InputError(
                "must be a list of distinct non-negative integers",
                file=path,
                field=f"{where}.task_ids",
                remedy=_REMEDY,
            )
        return tuple(ids)
    start: Any = raw.get("start")
    end: Any = raw.get("end")
    if not (_is_id(start) and _is_id(end)) or not start <= end <= _LARGEST_ID:
        raise InputError(
            f"needs task_ids, or start and end with 0 <= start <= end <= {_LARGEST_ID}",
            file=path,
            field=where,
            value={"start": start, "end": end},
            remedy=_REMEDY,
        )
    return tuple(range(start, end))


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
