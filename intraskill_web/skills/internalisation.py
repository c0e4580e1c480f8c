"""How far skills have moved into the weights: what still changes when the skill is in the prompt.

Of each checkpoint: success without a chunk (skill-free), success with them (assisted), and their
difference on the tasks that both played, with Newcombe's interval for paired proportions
(trainer/compare/paired.py). A gap near zero with a narrow interval is what internalised means.
In training, the same two treatments by round: groups are the unit, because siblings share a task.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from intraskill_web.charts.rows import ForestScale, forest_axis, forest_row
from intraskill_web.charts.svg import Markup
from intraskill_web.core import formats
from intraskill_web.episodes.models import Episode
from intraskill_web.experiments.checkpoints import score_episodes
from intraskill_web.experiments.models import CheckpointScore, Experiment
from intraskill_web.gates.final_test import COMPARISONS
from intraskill_web.monitoring.statistics import wilson
from intraskill_web.skills.treatments import Training, training_rows
from trainer.compare.paired import Transitions, newcombe
from trainer.errors import InputError
from trainer.files import read_json

ARMS = ("full", "masked")
TRANSITIONS = ("failure_to_success", "success_to_failure", "both_success", "both_failure")
PURPOSES = ("baseline", "bare", "full", "masked", "test")
PURPOSES = ("baseline", "bare", "full", "masked", "test")
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
class Gap:
    """Assisted minus skill-free. ``paired`` is None where the episodes are not here: then the
    difference is that of two rates and the interval treats them as independent.
    """

    value: float
    interval: Interval
    paired: Transitions | None
    pairs: int


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
    outcomes, documents = _outcomes(experiment), _compared(experiment)
    found = []
    for (_split, _step), by_arm in sorted(arms.items(), key=lambda i: (i[0][0] == "test", i[0][1])):
        for arm in ARMS:
            if "bare" in by_arm and arm in by_arm:
                pair = by_arm["bare"], by_arm[arm]
                table = _paired(*pair, outcomes) or _recorded(*pair, documents)
                found.append((*pair, _gap(*pair, table)))
    scale = ForestScale.holding([e for _b, _a, gap in found for e in (*gap.interval, gap.value)])
    rows = [_checkpoint(experiment, *item, scale) for item in found]
    trained = training_rows(experiment)
    return Internalisation(
        checkpoints=rows,
        axis=forest_axis(scale) if rows else None,
        training=trained.rows,
        training_axis=trained.axis,
    )


def _outcomes(experiment: Experiment) -> dict[tuple[int, str, str], dict[tuple[int, int], bool]]:
    """Successes of scored evaluation episodes by (round, purpose, arm), then task and sample."""
    found: dict[tuple[int, str, str], dict[tuple[int, int], bool]] = {}
    rows = Episode.objects.filter(
        experiment=experiment,
        purpose__in=PURPOSES,
        scored=True,
    ).values_list("round_id", "purpose", "arm", "task_id", "sample_id", "success")
    for round_id, purpose, arm, task, sample, success in rows.iterator():
        found.setdefault((round_id, purpose, arm), {})[task, sample] = bool(success)
    return found


def _paired(
    bare: CheckpointScore,
    assisted: CheckpointScore,
    outcomes: Mapping[tuple[int, str, str], Mapping[tuple[int, int], bool]],
) -> Transitions | None:
    """From the episodes of both arms."""
    first, second = (outcomes.get(_key(score), {}) for score in (bare, assisted))
    shared = first.keys() & second.keys()
    if not shared:
        return None
    return Transitions(
        gain=sum(not first[k] and second[k] for k in shared),
        loss=sum(first[k] and not second[k] for k in shared),
        both=sum(first[k] and second[k] for k in shared),
        neither=sum(not first[k] and not second[k] for k in shared),
    )


def _compared(experiment: Experiment) -> list[dict[str, Any]]:
    """The comparisons of test arms that an import has computed task by task."""
    try:
        return list(read_json(experiment.folder / COMPARISONS))
    except InputError:
        return []


def _recorded(
    bare: CheckpointScore, assisted: CheckpointScore, documents: Sequence[Mapping[str, Any]]
) -> Transitions | None:
    """From the comparison of exactly these two test arms, known by both success rates."""
    for document in documents if bare.split == "test" else []:
        success, table = document["metrics"].get("r_success"), document.get("transitions")
        if success and table and document["pairs"] == bare.n == assisted.n:
            apart = abs(success["a_mean"] - bare.success), abs(success["b_mean"] - assisted.success)
            if max(apart) < 1e-9:
                return Transitions(*(table[key] for key in TRANSITIONS))
    return None


def _gap(bare: CheckpointScore, assisted: CheckpointScore, table: Transitions | None) -> Gap:
    if table is not None:
        return Gap((table.gain - table.loss) / table.n, newcombe(table), table, table.n)
    value = assisted.success - bare.success
    (low_b, high_b), (low_a, high_a) = (
        wilson(round(s.success * s.n), s.n) for s in (bare, assisted)
    )
    down = math.hypot(assisted.success - low_a, high_b - bare.success)
    up = math.hypot(high_a - assisted.success, bare.success - low_b)
    return Gap(value, (value - down, value + up), None, 0)


def _key(score: CheckpointScore) -> tuple[int, str, str]:
    purpose = "test" if score.split == "test" else "baseline" if score.step == 0 else score.arm
    return score.round_id, purpose, score.arm


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
