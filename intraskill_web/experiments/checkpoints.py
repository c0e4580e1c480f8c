"""What each checkpoint can do: bare and with the full skill, by training step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from intraskill_web.charts.panel import Band, Frame, Line, Marker, line_panel
from intraskill_web.charts.scale import rate_range, whole_ticks
from intraskill_web.charts.svg import Markup
from intraskill_web.core import formats
from intraskill_web.core.tables import Column, Table
from intraskill_web.episodes.links import episodes_url
from intraskill_web.experiments.gaps import Gap, gaps
from intraskill_web.experiments.models import CheckpointScore, Experiment
from intraskill_web.monitoring.statistics import wilson

MOST_MARKERS = 24  # of the newest checkpoints; closer together none could be pointed at


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """One checkpoint on one split: bare and full skill, and their gap."""

    step: int
    split: str
    label: str
    bare: CheckpointScore | None
    full: CheckpointScore | None
    gap: Gap | None  # None unless both arms were played
    experiment: str  # its name; empty where nothing is to be opened

    @property
    def bare_href(self) -> str:
        """The episodes behind the bare score."""
        return _score_href(self.experiment, self.bare)

    @property
    def full_href(self) -> str:
        """The episodes behind the score with the full skill."""
        return _score_href(self.experiment, self.full)


def checkpoint_rows(
    experiment: Experiment, scores: Sequence[CheckpointScore]
) -> list[CheckpointRow]:
    """Checkpoints in order of training, validation before test. One query, or none (gaps.py)."""
    found: dict[tuple[str, int], dict[str, CheckpointScore]] = {}
    for score in scores:
        found.setdefault((score.split, score.step), {})[score.arm] = score
    both = [(a["bare"], a["full"]) for a in found.values() if "bare" in a and "full" in a]
    known = dict(zip(both, gaps(experiment, both), strict=True))
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
                gap=known[bare, full] if bare and full else None,
                experiment=experiment.name,
            )
        )
    return rows


def score_episodes(name: str, number: int, score: CheckpointScore) -> str:
    """The episodes of round ``number`` behind ``score``."""
    purpose = "test" if score.split == "test" else "baseline" if score.step == 0 else score.arm
    return episodes_url(experiment=name, round=number, purpose=purpose, arm=score.arm)


def _score_href(name: str, score: CheckpointScore | None) -> str:
    return score_episodes(name, score.round.number, score) if score and name else ""


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
            for row, s in scores[-MOST_MARKERS:]
        ]  # fmt: skip
    first, newest = rows[0], rows[-1]
    end = max(float(last_step), float(newest.step), 1.0)
    frame = Frame(
        x_range=(-0.01 * end, end),
        x_ticks=whole_ticks(0.0, end),
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
        Column("low", _("From"), "effect"),
        Column("high", _("To"), "effect"),
        Column("pairs", _("Pairs"), "count"),
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
                "gap": row.gap.value if row.gap else None,
                "low": row.gap.interval[0] if row.gap else None,
                "high": row.gap.interval[1] if row.gap else None,
                "pairs": row.gap.pairs or None if row.gap else None,
                "_href": row.bare_href,
            }
            for row in rows
        ],
    )
