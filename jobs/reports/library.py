"""The documents of a run that may be shown, each reduced to its allowed fields."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from jobs.reports import privacy
from trainer.files import read_json, read_jsonl

# pattern under the run folder → what it is, its specification
OWN: tuple[tuple[str, str, Any], ...] = (
    ("round-*/config/*.yaml", "config", {**privacy.CONFIG, **privacy.TASKS}),
    ("round-*/skillbank.json", "bank", privacy.BANK),
    ("round-*/curriculum.json", "curriculum", privacy.CURRICULUM),
    ("round-*/analysis/candidate_pool.json", "pool", privacy.POOL),
    ("round-*/gate/selected_skillbank.json", "bank", privacy.BANK),
    ("round-*/gate/proposal_ledger.jsonl", "ledger", privacy.LEDGER),
    ("round-*/*/*/summary.json", "summary", privacy.SUMMARY),
    ("round-*/gate/summary.json", "summary", privacy.SUMMARY),
    ("orders/*/*/summary.json", "summary", privacy.SUMMARY),
)
PUBLISHED: tuple[tuple[str, str, Any], ...] = (
    ("artifacts/cold-start/initial_skillbank.json", "bank", privacy.BANK),
    ("artifacts/cold-start/selected_skillbank.json", "bank", privacy.BANK),
    ("artifacts/cold-start/curriculum.json", "curriculum", privacy.CURRICULUM),
    ("artifacts/round-*/curriculum.json", "curriculum", privacy.CURRICULUM),
    ("artifacts/round-*/analysis/candidate_pool.json", "pool", privacy.POOL),
    ("artifacts/round-*/gate/selected_skillbank.json", "bank", privacy.BANK),
    ("artifacts/round-*/gate/proposal_ledger.jsonl", "ledger", privacy.LEDGER),
    ("artifacts/round-*/gate/summary.json", "summary", privacy.SUMMARY),
    ("artifacts/eval/*/summary.json", "summary", privacy.SUMMARY),
    ("artifacts/eval/ranking/*/summary.json", "summary", privacy.SUMMARY),
)


@dataclass(frozen=True, slots=True)
class LibraryDocument:
    """One document: ``name`` is its path in the run folder, ``href`` its copy in the export."""

    name: str
    title: str
    kind: str
    text: str

    @property
    def slug(self) -> str:
        """Fit for an id."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    @property
    def href(self) -> str:
        return f"data/library/{self.slug}.{'yaml' if self.kind == 'config' else 'json'}"

    @property
    def sha256(self) -> str:
        """Of the shown text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def library(folder: Path, kind: str) -> list[LibraryDocument]:
    """Every document of the run, in order of round and kind."""
    shelves = PUBLISHED if kind == "published" else OWN
    found = [document for shelf in shelves for document in _of(folder, *shelf)]
    return sorted(found, key=lambda d: d.name)


def _of(folder: Path, pattern: str, kind: str, spec: Any) -> Iterator[LibraryDocument]:
    for path in sorted(folder.glob(pattern)):
        name = path.relative_to(folder).as_posix()
        yield LibraryDocument(name, title_of(name), kind, _text(path, spec))


def title_of(name: str) -> str:
    """``round-000/gate/summary.json`` → ``round-000 · gate · summary``."""
    parts = [p for p in name.rsplit(".", 1)[0].split("/") if p != "artifacts"]
    return " · ".join(parts)


def _text(path: Path, spec: Any) -> str:
    if path.suffix == ".yaml":
        value = privacy.allowed(yaml.safe_load(path.read_text(encoding="utf-8")), spec)
        return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))
    if path.suffix == ".jsonl":
        return dumps([privacy.allowed(row, spec) for row in read_jsonl(path)])
    return dumps(privacy.allowed(read_json(path), spec))


def dumps(value: Any) -> str:
    """JSON as every file of an export has it."""
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def gate_numbers(folder: Path, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What fitting each gate again needs: (name in the export, document)."""
    base = folder / "artifacts" if kind == "published" else folder
    for path in sorted(base.glob("round-*/gate/contributions.json")):
        where = f"data/gates/{path.parent.parent.name}"
        yield f"{where}/contributions.json", privacy.allowed(read_json(path), privacy.CONTRIBUTIONS)
        manifest = path.parent / "online_gate_manifest.json"
        if manifest.is_file():
            settings = privacy.allowed(read_json(manifest), privacy.GATE_SETTINGS)
            if settings:
                yield f"{where}/online_gate_manifest.json", settings
