"""The experiment page: success of each checkpoint, survival of each chunk, and the rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from intraskill_web.charts.panel import Band, Frame, Line, Marker, line_panel
from intraskill_web.charts.scale import rate_range
from intraskill_web.charts.svg import Markup
from intraskill_web.core import formats
from intraskill_web.core.tables import Column, Table
from intraskill_web.episodes.links import episodes_url
from intraskill_web.experiments.models import CheckpointScore, Experiment, Round
from intraskill_web.gates.models import GateRun
from intraskill_web.monitoring.statistics import wilson
from intraskill_web.skills.models import SkillVersion


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """One checkpoint on one split: bare and full skill, and their gap."""

    step: int
    split: str
    label: str
    bare: CheckpointScore | None
    full: CheckpointScore | None
    bare_href: str = ""
    full_href: str = ""

    @property
    def gap(self) -> float | None:
        """Full minus bare success."""
        if self.bare is None or self.full is None:
            return None
        return self.full.success - self.bare.success


def checkpoint_rows(
    experiment: Experiment, scores: Sequence[CheckpointScore]
) -> list[CheckpointRow]:
    """Checkpoints in order of training, validation before test."""
    found: dict[tuple[str, int], dict[str, CheckpointScore]] = {}
    for score in scores:
        found.setdefault((score.split, score.step), {})[score.arm] = score
    rows = []
    for (split, step), arms in sorted(found.items(), key=lambda i: (i[0][0] == "test", i[0][1])):
        bare, full = arms.get("bare"), arms.get("full")
        rows.append(
            CheckpointRow(
                step=step,
                split=split,
                label=_("start") if step == 0 else _("step %(n)d") % {"n": step},
                bare=bare,
                full=full,
                bare_href=_score_href(experiment, bare),
                full_href=_score_href(experiment, full),
            )
        )
    return rows


def _score_href(experiment: Experiment, score: CheckpointScore | None) -> str:
    if score is None:
        return ""
    purpose = "test" if score.split == "test" else "baseline" if score.step == 0 else score.arm
    return episodes_url(
        experiment=experiment.name, round=score.round.number, purpose=purpose, arm=score.arm
    )


def checkpoint_chart(rows: Sequence[CheckpointRow], last_step: int) -> Markup | None:
    """Bare and full success on validation by training step, each with its 95 % band."""
    rows = [row for row in rows if row.split == "val"]
    if not rows:
        return None
    lines, bands, markers = [], [], []
    values: list[float] = []
    for arm, line, shade, mark in (("full", "l2", "a2", "s2"), ("bare", "l1", "a1", "")):
        scores = [(row, s) for row in rows if (s := getattr(row, arm)) is not None]
        if not scores:
            continue
        points = [(float(s.step), s.success) for _row, s in scores]
        ends = [wilson(round(s.success * s.n), s.n) for _row, s in scores]
        values += [e for pair in ends for e in pair]
        word = _("full skill %(v)s") if arm == "full" else _("bare %(v)s")
        lines.append(Line(points, line, word % {"v": formats.rate(points[-1][1], 2)}))
        bands.append(
            Band([p[0] for p in points], [e[0] for e in ends], [e[1] for e in ends], shade)
        )
        markers += [
            Marker(s.step, s.success, "circle", mark, getattr(row, f"{arm}_href"),
                   f"{row.label}, {word % {'v': formats.rate(s.success)}}, n {formats.count(s.n)}")
            for row, s in scores
        ]  # fmt: skip
    first, newest = rows[0], rows[-1]
    end = max(float(last_step), float(newest.step), 1.0)
    frame = Frame(
        x_range=(0.0, end),
        y_range=rate_range(values),
        height=232,
        title=_("Success on validation by training step: bare from %(a)s to %(b)s.")
        % {
            "a": formats.rate(first.bare.success if first.bare else None),
            "b": formats.rate(newest.bare.success if newest.bare else None),
        },
    )
    return line_panel(frame, lines, bands=bands, markers=markers)


def checkpoint_table(rows: Sequence[CheckpointRow]) -> Table:
    """The chart's numbers."""
    columns = [
        Column("step", _("Step"), "count"),
        Column("split", _("Split")),
        Column("bare", _("Bare success"), "rate"),
        Column("bare_n", _("n bare"), "count"),
        Column("full", _("Full-skill success"), "rate"),
        Column("full_n", _("n full"), "count"),
        Column("gap", _("Gap"), "effect"),
    ]
    return Table(
        "checkpoints",
        columns,
        [
            {
                "step": row.step,
                "split": row.split,
                "bare": row.bare.success if row.bare else None,
                "bare_n": row.bare.n if row.bare else None,
                "full": row.full.success if row.full else None,
                "full_n": row.full.n if row.full else None,
                "gap": row.gap,
                "_href": row.bare_href,
            }
            for row in rows
        ],
    )


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
        return self.status in ("selected", "held", "adopted")


@dataclass(frozen=True, slots=True)
class SurvivalRow:
    """One logical chunk over the rounds; None where it was not measured."""

    skill_id: str
    title: str
    first: str
    cells: list[Cell | None]


@dataclass(frozen=True, slots=True)
class Survival:
    """The matrix of chunks and rounds, with the bank's size above each column."""

    rounds: list[int]
    sizes: list[int]
    rows: list[SurvivalRow]
    hrefs: list[str] = field(default_factory=list)


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
        best: dict[str, Any] = {}
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
    ordered = sorted(rows.values(), key=_life)
    return Survival(rounds, [v.size for v in versions], ordered)  # type: ignore[attr-defined]


def _stands_for(item: Any) -> tuple[bool, float]:
    return item.status in ("selected", "held", "adopted"), item.coefficient or -1.0


def _life(row: SurvivalRow) -> tuple[int, int, float]:
    """Long-lived first, then by the latest coefficient."""
    known = [cell for cell in row.cells if cell is not None]
    first = next(i for i, cell in enumerate(row.cells) if cell is not None)
    kept = sum(cell.kept for cell in known)
    return first, -kept, -(known[-1].coefficient or 0.0)


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


@dataclass(frozen=True, slots=True)
class RoundRow:
    """One line of the table of rounds."""

    round: Round
    bank: str
    gate: GateRun | None
    scores: Mapping[str, CheckpointScore]
    stage: str
    percent: int | None


__all__ = ["CheckpointRow", "RoundRow", "Survival", "checkpoint_chart", "checkpoint_rows"]
