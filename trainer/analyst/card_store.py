"""``failure_cards.jsonl``: append-only, the last record of a source wins, every line on disk before
it counts. Specification: gate-analysis.md §11.5.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainer.analyst.cards import ANALYST_ERROR
from trainer.files import append_jsonl, read_jsonl

Row = dict[str, Any]


class CardStore:
    """The cards of one round. Safe for several threads of one process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._rows: dict[str, Row] = {}
        self._errors: Counter[tuple[str, str]] = Counter()
        for row in read_jsonl(path):
            self._note(row)

    def _note(self, row: Row) -> None:
        source = row["source_trajectory_id"]
        self._rows[source] = row
        if row["status"] == ANALYST_ERROR:
            self._errors[source, row["error"]["type"]] += 1

    def add(self, row: Row) -> None:
        """Append a card or an error; it is on disk when this returns."""
        with self._lock:
            append_jsonl(self.path, [row])
            self._note(row)

    def errors(self, source: str, kind: str) -> int:
        """How often the analysis of a source ended with an error of this kind."""
        return self._errors[source, kind]

    def usable(self, source: str, input_fingerprint: str, *, retry_errors: bool) -> bool:
        """Whether the card of a source was made from this very input and need not be made again."""
        row = self._rows.get(source)
        if row is None or row["input_fingerprint"] != input_fingerprint:
            return False
        return not (retry_errors and row["status"] == ANALYST_ERROR)

    def rows(self, sources: Mapping[str, str]) -> list[Row]:
        """The latest row of each source, by source id, as far as it was made from the input named
        beside it (source → input fingerprint)."""
        return [
            self._rows[source]
            for source in sorted(sources)
            if source in self._rows and self._rows[source]["input_fingerprint"] == sources[source]
        ]
