"""How far skills have moved into the weights: what still changes when the skill is in the prompt.

Of each checkpoint: success without a chunk (skill-free), success with them (assisted), and the gap
between the two (experiments/gaps.py). In training, the same two treatments by round: groups are the
unit, because siblings share a task.
"""

from __future__ import annotations

from dataclasses import dataclass

from intraskill_web.charts.rows import ForestScale, forest_axis, forest_row
from intraskill_web.charts.svg import Markup
from intraskill_web.core import formats
from intraskill_web.experiments.checkpoints import score_episodes
from intraskill_web.experiments.gaps import Gap, gaps
from intraskill_web.experiments.models import CheckpointScore, Experiment
from intraskill_web.monitoring.statistics import wilson
from intraskill_web.skills.treatments import Training, training_rows

ARMS = ("full", "masked")
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Arm:
    """Success of one arm of one checkpoint, with Wilson's interval."""

    success: float
    n: int
    href: str

    @property
    def interval(self) -> Interval:
        """95 %."""
        return wilson(round(self.success * self.n), self.n)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint on one split, assisted by the full skill or by a gate's masks."""

    step: int
    split: str
    arm: str
    bare: Arm
    assisted: Arm
    gap: Gap
    drawing: Markup


@dataclass(frozen=True, slots=True)
class Internalisation:
    """What the page shows."""

    checkpoints: list[Checkpoint]
    axis: Markup | None
    training: list[Training]
    training_axis: Markup | None


def build(experiment: Experiment) -> Internalisation:
    """Three queries: scores, evaluation outcomes, groups of training."""
    scores = CheckpointScore.objects.filter(experiment=experiment).select_related("round")
    arms: dict[tuple[str, int], dict[str, CheckpointScore]] = {}
    for score in scores.order_by("step"):
        arms.setdefault((score.split, score.step), {})[score.arm] = score
    pairs = [
        (by_arm["bare"], by_arm[arm])
        for _place, by_arm in sorted(arms.items(), key=lambda i: (i[0][0] == "test", i[0][1]))
        for arm in ARMS
        if "bare" in by_arm and arm in by_arm
    ]
    found = gaps(experiment, pairs)
    scale = ForestScale.holding([e for gap in found for e in (*gap.interval, gap.value)])
    rows = [
        _checkpoint(experiment, *pair, gap, scale) for pair, gap in zip(pairs, found, strict=True)
    ]
    trained = training_rows(experiment)
    return Internalisation(
        checkpoints=rows,
        axis=forest_axis(scale) if rows else None,
        training=trained.rows,
        training_axis=trained.axis,
    )


def _checkpoint(
    experiment: Experiment,
    bare: CheckpointScore,
    assisted: CheckpointScore,
    gap: Gap,
    scale: ForestScale,
) -> Checkpoint:
    def arm(score: CheckpointScore) -> Arm:
        href = score_episodes(experiment.name, score.round.number, score)
        return Arm(score.success, score.n, href)

    label = f"{formats.effect(gap.value)} {formats.interval(*gap.interval)}"
    return Checkpoint(
        step=bare.step,
        split=bare.split,
        arm=assisted.arm,
        bare=arm(bare),
        assisted=arm(assisted),
        gap=gap,
        drawing=forest_row(scale, gap.value, gap.interval, "selected", label, height=28),
    )
