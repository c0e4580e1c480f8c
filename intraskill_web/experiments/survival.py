"""What became of each chunk: the matrix of chunks and rounds, from the gates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.utils.translation import gettext as _

from intraskill_web.charts.rows import ForestScale, forest_axis, forest_row
from intraskill_web.charts.svg import Markup
from intraskill_web.core import formats
from intraskill_web.core.tables import Column, Table
from intraskill_web.gates.forest import STATUS_ORDER
from intraskill_web.gates.models import KEPT, Contribution, GateRun
from intraskill_web.skills.models import SkillVersion


@dataclass(frozen=True, slots=True)
class Cell:
    """A chunk in one round's gate; ``heat`` is a class from n3 (harms) over z to p3 (helps)."""

    coefficient: float | None
    low: float | None
    high: float | None
    status: str
    heat: str

    @property
    def kept(self) -> bool:
        """Whether the chunk is in the next bank."""
        return self.status in KEPT


@dataclass(frozen=True, slots=True)
class SurvivalRow:
    """One logical chunk over the rounds; None where it was not measured."""

    skill_id: str
    title: str
    first: str
    cells: list[Cell | None]
    newest: Markup | None = None

    @property
    def last(self) -> Cell:
        """The newest gate that measured the chunk."""
        return next(cell for cell in reversed(self.cells) if cell is not None)


@dataclass(frozen=True, slots=True)
class Survival:
    """The matrix of chunks and rounds, with the bank's size above each column."""

    rounds: list[int]
    sizes: list[int]
    rows: list[SurvivalRow]
    axis: Markup

    @property
    def statuses(self) -> list[str]:
        """The statuses in the matrix, for its legend."""
        present = {cell.status for row in self.rows for cell in row.cells if cell is not None}
        return [status for status in STATUS_ORDER if status in present]


def survival(versions: Sequence[SkillVersion], gates: Sequence[GateRun]) -> Survival:
    """Chunks × rounds from the gates; a rewrite counts for the chunk whose slot it takes.

    ``versions`` carry ``size``; gates carry prefetched contributions.
    """
    rounds = sorted({gate.round.number for gate in gates})
    column = {number: i for i, number in enumerate(rounds)}
    reach = max(
        (abs(c.coefficient) for g in gates for c in g.contributions.all() if c.coefficient),
        default=0.0,
    )
    rows: dict[str, SurvivalRow] = {}
    for gate in gates:
        best: dict[str, Contribution] = {}
        for item in gate.contributions.all():
            held = best.get(item.logical_chunk_id)
            if held is None or _stands_for(item) > _stands_for(held):
                best[item.logical_chunk_id] = item
        for skill_id, item in best.items():
            row = rows.get(skill_id)
            if row is None:
                first = (
                    "S0"
                    if item.kind != "candidate"
                    else _("round %(n)s") % {"n": gate.round.number}
                )
                row = SurvivalRow(skill_id, item.title or skill_id, first, [None] * len(rounds))
                rows[skill_id] = row
            row.cells[column[gate.round.number]] = Cell(
                item.coefficient, item.low, item.high, item.status, _heat(item.coefficient, reach)
            )
    ends = [
        e
        for row in rows.values()
        for e in (row.last.low, row.last.high, row.last.coefficient)
        if e is not None
    ]
    scale = ForestScale.holding(ends)
    ordered = [
        replace(row, newest=_drawing(scale, row.last)) for row in sorted(rows.values(), key=_life)
    ]
    sizes = [version.size for version in versions]  # type: ignore[attr-defined]
    return Survival(rounds, sizes, ordered, forest_axis(scale))


def _stands_for(item: Contribution) -> tuple[bool, float]:
    return item.status in KEPT, item.coefficient or -1.0


def _life(row: SurvivalRow) -> tuple[int, int, float]:
    """Long-lived first, then by the latest coefficient."""
    known = [cell for cell in row.cells if cell is not None]
    first = next(i for i, cell in enumerate(row.cells) if cell is not None)
    kept = sum(cell.kept for cell in known)
    return first, -kept, -(known[-1].coefficient or 0.0)


def _drawing(scale: ForestScale, cell: Cell) -> Markup:
    interval = None if cell.low is None or cell.high is None else (cell.low, cell.high)
    label = f"{formats.effect(cell.coefficient)} {formats.interval(cell.low, cell.high)}"
    return forest_row(scale, cell.coefficient or 0.0, interval, cell.status, label)


def _heat(value: float | None, reach: float) -> str:
    if value is None or not reach:
        return "z"
    level = min(3, int(abs(value) / reach * 3) + 1)
    return f"{'p' if value > 0 else 'n'}{level}"


def survival_table(matrix: Survival) -> Table:
    """The matrix with one row a chunk and round."""
    columns = [
        Column("skill_id", _("Chunk"), "mono"),
        Column("round", _("Round"), "count"),
        Column("coefficient", _("Coefficient"), "effect"),
        Column("low", _("From"), "effect"),
        Column("high", _("To"), "effect"),
        Column("status", _("Status")),
    ]
    rows = [
        {
            "skill_id": row.skill_id, "round": number, "coefficient": cell.coefficient,
            "low": cell.low, "high": cell.high, "status": cell.status,
        }
        for row in matrix.rows
        for number, cell in zip(matrix.rounds, row.cells, strict=True)
        if cell is not None
    ]  # fmt: skip
    return Table("survival", columns, rows)
