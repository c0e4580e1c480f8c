"""The published layout: where its files lie, and how they are read.

``artifacts/cold-start``, ``artifacts/round-NNN``, ``artifacts/analysis`` and ``artifacts/eval``
beside the file of the task split; any subset of it is a valid folder. Files may have either line
ending: they are parsed, and hashed after CRLF → LF.
"""

from __future__ import annotations

import csv
import hashlib
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.errors import InputError
from trainer.files import read_json

ROUND = re.compile(r"round-(\d{3})")
SPLITS = "ShopSimulator/shop_env/configs/persona_splits.v1.json"
TEXTS = frozenset({".json", ".jsonl", ".csv", ".md", ".txt", ".yaml", ".yml", ".gz"})


@dataclass(frozen=True, slots=True)
class PublishedFolder:
    """A folder that holds ``artifacts/``."""

    root: Path

    @property
    def artifacts(self) -> Path:
        return self.root / "artifacts"

    @property
    def analysis(self) -> Path:
        return self.artifacts / "analysis"

    def round(self, number: int) -> Path:
        return self.artifacts / f"round-{number:03d}"

    def bank(self, number: int) -> Path:
        """The file of S_number: the first from the cold start, the others from gates."""
        if number == 0:
            return self.artifacts / "cold-start" / "selected_skillbank.json"
        return self.round(number - 1) / "gate" / "selected_skillbank.json"

    def curriculum(self, number: int) -> Path:
        folder = self.artifacts / "cold-start" if number == 0 else self.round(number)
        return folder / "curriculum.json"

    def relative(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def table(self, name: str) -> list[dict[str, str]]:
        """The rows of a CSV under ``artifacts/analysis``; none when it is absent."""
        path = self.analysis / name
        if not path.is_file():
            return []
        with path.open(encoding="utf-8-sig", newline="") as handle:
            return list(csv.DictReader(handle))

    def of_round(self, name: str, number: int) -> list[dict[str, str]]:
        """The rows of a CSV that belong to a round."""
        return [row for row in self.table(name) if row["round"] == str(number)]

    def rounds(self) -> list[int]:
        """Every round that has a folder or a row, in order."""
        found = {
            int(match[1])
            for path in self.artifacts.iterdir()
            if path.is_dir() and (match := ROUND.fullmatch(path.name))
        }
        for name in ("rounds.csv", "chunk_contributions.csv"):
            found |= {int(row["round"]) for row in self.table(name)}
        return sorted(found)

    def split(self, name: str) -> list[int] | None:
        """The task ids of a split in the file's order; None without the file."""
        path = self.root / SPLITS
        return list(read_json(path)["splits"][name]["task_ids"]) if path.is_file() else None

    def json(self, path: Path) -> Any:
        """A parsed document, or None when it is absent."""
        return read_json(path) if path.is_file() else None


def find(path: Path) -> PublishedFolder | None:
    """The published layout at ``path`` (or of which ``path`` is the ``artifacts`` folder)."""
    for root in (path, path.parent):
        folder = PublishedFolder(root)
        if folder.artifacts.is_dir() and (root == path or path.name == "artifacts"):
            return folder
    return None


def copy(source: PublishedFolder, target: Path) -> PublishedFolder:
    """Copy the texts of a folder under ``target``; files that are there already stay."""
    for path in _texts(source):
        place = target / source.relative(path)
        if place.is_file() and sha256(place) == sha256(path):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    return PublishedFolder(target)


def _texts(folder: PublishedFolder) -> Iterator[Path]:
    """Everything under ``artifacts`` that is text, the split and the folder's own manifest."""
    found = 0
    for path in sorted(folder.artifacts.rglob("*")):
        if path.suffix in TEXTS and path.is_file() and not path.is_symlink():
            found += 1
            yield path
    if not found:
        raise InputError("holds no artifacts", file=folder.artifacts)
    for name in ("MANIFEST.json", SPLITS):
        if (folder.root / name).is_file():
            yield folder.root / name


def sha256(path: Path, *, lf: bool = False) -> str:
    """SHA-256 of a file's bytes, or of its text with LF line ends."""
    data = path.read_bytes()
    return hashlib.sha256(data.replace(b"\r\n", b"\n") if lf else data).hexdigest()
