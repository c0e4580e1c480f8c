"""A sweep's arms side by side: mean and spread over seeds, and the paired difference to the first.

Pure: rows in, tables and charts out. Success is that of the bare policy on validation after each
round (and of the test after the last), because that is what every arm is for. The spread is the
standard deviation over seeds; the interval of a paired difference is Student's t over seeds, and is
left out for a single one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

from django.utils.translation import gettext as _

from intraskill_web.charts.panel import Band, Frame, Line, line_panel
from intraskill_web.charts.scale import rate_range, whole_ticks
from intraskill_web.charts.svg import Markup
from intraskill_web.core import formats
from intraskill_web.core.tables import Column, Table
from intraskill_web.experiments.models import CheckpointScore, Experiment
from intraskill_web.experiments.presets import LABELS

STYLES = (("l1", "a1"), ("l2", "a2"), ("l3", ""), ("l4", ""), ("l5", ""), ("l6", ""), ("l1", ""))
# two-sided 95 % quantiles of Student's t by degrees of freedom, 1 to 30
T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spread:
    """Values over seeds: their mean, standard deviation (None for one), smallest and largest."""

    mean: float
    sd: float | None
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """Of at least one value; None of none."""
        if not values:
            return None
        sd = stdev(values) if len(values) > 1 else None
        return cls(fmean(values), sd, min(values), max(values), len(values))

    @property
    def half_width(self) -> float | None:
        """Half of the 95 % interval of the mean over seeds."""
        if self.sd is None:
            return None
        t = T95[self.n - 2] if self.n - 2 < len(T95) else 1.96
        return float(t * self.sd / self.n**0.5)


@dataclass(slots=True)
class Arm:
    """One arm: its experiments by seed, and (seed, step, split) → bare success."""

    key: str
    label: str
    experiments: list[Experiment] = field(default_factory=list)
    success: dict[tuple[int, int, str], float] = field(default_factory=dict)

    @property
    def heading(self) -> str:
        """The id of its heading on the page."""
        return f"h-{self.key}"

    @property
    def fragment(self) -> str:
        """The id of what a poll may replace."""
        return f"arm-{self.key}"

    def at(self, step: int, split: str) -> Spread | None:
        """Over the seeds that were measured there."""
        return Spread.of(
            [v for (_s, at, of), v in self.success.items() if (at, of) == (step, split)]
        )

    def against(self, other: Arm, step: int, split: str) -> Spread | None:
        """Differences to ``other`` over the seeds that both have: this arm minus the other."""
        pairs = [
            value - other.success[key]
            for key, value in self.success.items()
            if key[1:] == (step, split) and key in other.success
        ]
        return Spread.of(pairs)


def arms_of(
    keys: Sequence[str], experiments: Sequence[Experiment], scores: Sequence[CheckpointScore]
) -> list[Arm]:
    """The arms in the sweep's order; ``scores`` are bare ones of these experiments."""
    arms = {key: Arm(key, str(LABELS[key][0]) if key in LABELS else key) for key in keys}
    by_id = {}
    for experiment in sorted(experiments, key=lambda e: e.seed):
        if experiment.arm in arms:
            arms[experiment.arm].experiments.append(experiment)
            by_id[experiment.pk] = experiment
    for score in scores:
        owner = by_id.get(score.experiment_id)
        if owner is not None:
            arms[owner.arm].success[owner.seed, score.step, score.split] = score.success
    return list(arms.values())


def checkpoints(arms: Sequence[Arm]) -> list[tuple[int, str]]:
    """(step, split) in order of training, the test last."""
    found = {(step, split) for arm in arms for _seed, step, split in arm.success}
    return sorted(found, key=lambda place: (place[1] == "test", place[0]))


def comparison(arms: Sequence[Arm]) -> Table:
    """A row an arm and checkpoint: mean, spread, and the paired difference to the first arm."""
    columns = [
        Column("arm", _("Arm")),
        Column("step", _("Step"), "count"),
        Column("split", _("Split")),
        Column("seeds", _("Seeds"), "count"),
        Column("mean", _("Mean success"), "rate"),
        Column("sd", _("Standard deviation"), "rate"),
        Column("low", _("Lowest"), "rate"),
        Column("high", _("Highest"), "rate"),
        Column("difference", _("Difference"), "effect"),
        Column("difference_low", _("Student's 95 %, from"), "effect"),
        Column("difference_high", _("Student's 95 %, to"), "effect"),
        Column("pairs", _("Pairs"), "count"),
    ]
    rows = [_row(arm, arms[0], step, split) for step, split in checkpoints(arms) for arm in arms]
    return Table("sweep", columns, [row for row in rows if row])


def _row(arm: Arm, first: Arm, step: int, split: str) -> dict[str, object]:
    spread = arm.at(step, split)
    if spread is None:
        return {}
    gap = None if arm is first else arm.against(first, step, split)
    half = gap.half_width if gap else None
    return {
        "arm": arm.label,
        "step": step,
        "split": split,
        "seeds": spread.n,
        "mean": spread.mean,
        "sd": spread.sd,
        "low": spread.low,
        "high": spread.high,
        "difference": gap.mean if gap else None,
        "difference_low": gap.mean - half if gap and half is not None else None,
        "difference_high": gap.mean + half if gap and half is not None else None,
        "pairs": gap.n if gap else None,
        "_href": f"#arm-{arm.key}",
    }


def legend(arms: Sequence[Arm]) -> list[tuple[str, str]]:
    """The line of each arm in the chart and its name: names are too long to stand beside lines."""
    return [(line, arm.label) for arm, (line, _shade) in zip(arms, STYLES, strict=False)]


def chart(arms: Sequence[Arm]) -> Markup | None:
    """Mean bare success on validation by step, a line an arm; bands from lowest to highest seed."""
    steps = [step for step, split in checkpoints(arms) if split == "val"]
    if not steps:
        return None
    lines, bands, values = [], [], []
    for arm, (line, shade) in zip(arms, STYLES, strict=False):
        spreads = [(step, s) for step in steps if (s := arm.at(step, "val")) is not None]
        if not spreads:
            continue
        points = [(float(step), s.mean) for step, s in spreads]
        values += [v for _step, s in spreads for v in (s.low, s.high)]
        lines.append(Line(points, line, formats.rate(points[-1][1], 2)))
        if shade and any(s.n > 1 for _step, s in spreads):
            low, high = [s.low for _st, s in spreads], [s.high for _st, s in spreads]
            bands.append(Band([p[0] for p in points], low, high, shade))
    end = max(float(steps[-1]), 1.0)
    frame = Frame(
        x_range=(-0.01 * end, end),
        x_ticks=whole_ticks(0.0, end),
        y_range=rate_range(values),
        height=280,
        title=_("Mean bare success on validation by training step, one line an arm."),
    )
    return line_panel(frame, lines, bands=bands)
