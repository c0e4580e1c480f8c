"""A table as data: what a chart's table twin, its CSV and its JSON are made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from intraskill_web.core import formats

Kind = Literal[
    "text", "mono", "count", "rate", "effect", "seconds", "number", "p", "status", "arms"
]
SHOW: Mapping[Kind, Callable[[Any], str]] = {
    "count": lambda value: formats.count(int(value)),
    "rate": lambda value: formats.rate(float(value)),
    "effect": lambda value: formats.effect(float(value)),
    "seconds": lambda value: formats.duration(float(value)),
    "number": lambda value: f"{value:.6g}",
    "p": lambda value: f"{value:.3f}" if value >= 0.001 else "< 0.001",
}


@dataclass(frozen=True, slots=True)
class Column:
    """``key`` names the value in rows, CSV and JSON; ``label`` is what people read."""

    key: str
    label: str
    kind: Kind = "text"

    @property
    def numeric(self) -> bool:
        """Whether values stand right-aligned."""
        return self.kind in SHOW

    def show(self, value: Any) -> str:
        """The value as people read it."""
        if value is None or value == "":
            return formats.UNKNOWN
        if self.kind in ("status", "arms"):  # their words need models, which need this module
            from intraskill_web.core.labels import arms, chunk_status

            return (arms if self.kind == "arms" else chunk_status)(str(value))
        return SHOW.get(self.kind, str)(value)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows are mappings by column key; a row's ``_href`` opens what it counts."""

    name: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]

    def cells(self) -> list[list[tuple[Column, str, str]]]:
        """For templates: per row the column, the text and an address (on the first cell)."""
        return [
            [
                (
                    column,
                    column.show(row.get(column.key)),
                    str(row.get("_href", "")) if i == 0 else "",
                )
                for i, column in enumerate(self.columns)
            ]
            for row in self.rows
        ]

    def data(self) -> list[dict[str, Any]]:
        """Rows for JSON, full precision."""
        return [{c.key: row.get(c.key) for c in self.columns} for row in self.rows]
