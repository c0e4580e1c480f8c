"""A folder as analyses read it: relative names, hashes of all that was read, what was missing."""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainer.files import read_json, read_jsonl


@dataclass(slots=True)
class Reader:
    """Reads below ``root`` and remembers what it read (``sources``) and what was not there."""

    root: Path
    sources: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    def has(self, name: str) -> bool:
        """Whether the file exists; a missing one is noted."""
        if (self.root / name).is_file():
            return True
        if name not in self.missing:
            self.missing.append(name)
        return False

    def json(self, name: str) -> Any:
        """A parsed document, or None when it is absent. Raises InputError when it is damaged."""
        if not self.has(name):
            return None
        self.note(name)
        return read_json(self.root / name)

    def lines(self, name: str) -> list[Any]:
        """The rows of a JSON lines file; none when it is absent."""
        if not self.has(name):
            return []
        self.note(name)
        return list(read_jsonl(self.root / name))

    def table(self, name: str) -> list[dict[str, str]]:
        """The rows of a CSV; none when it is absent."""
        if not self.has(name):
            return []
        self.note(name)
        with (self.root / name).open(encoding="utf-8-sig", newline="") as handle:
            return list(csv.DictReader(handle))

    def note(self, name: str) -> Path:
        """Remember a file as read; its hash covers its text with LF line ends."""
        path = self.root / name
        if name not in self.sources:
            data = path.read_bytes()
            if path.suffix not in (".gz", ".pt"):
                data = data.replace(b"\r\n", b"\n")
            self.sources[name] = hashlib.sha256(data).hexdigest()
        return path
