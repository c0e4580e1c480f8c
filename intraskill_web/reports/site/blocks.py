"""What a chapter is made of. Each block names its template; the data is finished text or markup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from intraskill_web.charts.svg import Markup
from intraskill_web.core.tables import Table


@dataclass(frozen=True, slots=True)
class Block:
    """Base: ``template`` under ``templates/reports/blocks``."""

    template: ClassVar[str]

    @property
    def path(self) -> str:
        """The template that draws the block."""
        return f"reports/blocks/{self.template}.html"


@dataclass(frozen=True, slots=True)
class Text(Block):
    """Paragraphs."""

    template: ClassVar[str] = "text"
    paragraphs: Sequence[str]


@dataclass(frozen=True, slots=True)
class Note(Block):
    """A standing limit: what this does not show."""

    template: ClassVar[str] = "note"
    text: str


@dataclass(frozen=True, slots=True)
class Formula(Block):
    """A formula with the meaning of its letters."""

    template: ClassVar[str] = "formula"
    text: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Fact:
    """A key figure; ``note`` is its denominator, ``source`` its file."""

    label: str
    value: str
    note: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Facts(Block):
    """Key figures side by side."""

    template: ClassVar[str] = "facts"
    items: Sequence[Fact]
    source: str = ""


@dataclass(frozen=True, slots=True)
class TableCard(Block):
    """A table; ``source`` is the file its numbers were computed from, ``csv`` its download."""

    template: ClassVar[str] = "table"
    title: str
    table: Table
    source: str = ""
    note: str = ""
    csv: str = ""


@dataclass(frozen=True, slots=True)
class ChartCard(Block):
    """A drawing with its table twin behind a fold. ``key`` explains marks in words."""

    template: ClassVar[str] = "chart"
    title: str
    drawing: Markup
    table: Table
    source: str = ""
    note: str = ""
    key: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class ForestCard(Block):
    """A forest plot: lines of (title, id, drawing, effect, interval, status, n)."""

    template: ClassVar[str] = "forest"
    title: str
    axis: Markup
    lines: Sequence[Mapping[str, Any]]
    source: str = ""
    note: str = ""
    statuses: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Matrix(Block):
    """Chunks × rounds (``experiments.survival``)."""

    template: ClassVar[str] = "matrix"
    title: str
    survival: Any
    source: str = ""


@dataclass(frozen=True, slots=True)
class Plot(Block):
    """An interactive figure: selects (name, label, options) whose choice a script draws."""

    template: ClassVar[str] = "plot"
    identity: str
    title: str
    selects: Sequence[tuple[str, str, Sequence[tuple[str, str]]]]
    words: Mapping[str, str] = field(default_factory=dict)
    slider: tuple[int, int] | None = None
    source: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Banks(Block):
    """The skill explorer: every version with its chunks, texts behind folds."""

    template: ClassVar[str] = "banks"
    banks: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Chunks(Block):
    """Titled texts behind folds: proposals, documents."""

    template: ClassVar[str] = "chunks"
    title: str
    items: Sequence[Mapping[str, Any]]
    source: str = ""


@dataclass(frozen=True, slots=True)
class Documents(Block):
    """The searchable library."""

    template: ClassVar[str] = "documents"
    documents: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Episodes(Block):
    """Chosen episodes, turn by turn."""

    template: ClassVar[str] = "episodes"
    samples: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Code(Block):
    """Commands or a document, verbatim."""

    template: ClassVar[str] = "code"
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Links(Block):
    """Downloads: (address, what it is, size in words)."""

    template: ClassVar[str] = "links"
    title: str
    items: Sequence[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a chapter; ``identity`` is its anchor, equal in all languages."""

    identity: str
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Chapter:
    """One page. ``scripts`` are its scripts under ``assets`` and ``data``, in order."""

    key: str
    title: str
    lead: str
    sections: Sequence[Section]
    scripts: Sequence[str] = ()

    @property
    def shown(self) -> list[Section]:
        """Sections that hold something."""
        return [section for section in self.sections if section.blocks]
