"""Values of the result document: figures with what stands behind them, tables, differences."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

Interval = tuple[float, float]


class Record(BaseModel):
    """Base of all parts: immutable, and a key it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Figure(Record):
    """One number: ``n`` counts ``of``; both are None where the source does not say."""

    value: float | int | None
    n: int | None
    of: str
    source: str


class Described(Record):
    """A distribution in four numbers."""

    n: int
    mean: float
    median: float
    p90: float | None = None
    least: float | None = None
    most: float | None = None


class Table(Record):
    """A table of numbers; empty cells are None."""

    columns: list[str]
    rows: list[list[float | int | str | None]]
    source: str


class Difference(Record):
    """Arm b minus arm a in one metric, task by task."""

    metric: str
    n: int
    of: str
    a: float
    b: float
    difference: float
    interval: Interval | None
    bca_interval: Interval | None = None
    sd: float | None = None
    detectable: float | None = None
    p: float | None = None
    p_holm: float | None = None
    source: str
