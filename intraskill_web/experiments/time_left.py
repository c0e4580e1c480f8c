"""How long a round and an experiment still take, from what their stages took before.

A stage tells its own time left from its pace (``Stage.eta_seconds``). Stages that have not begun
take what the same stage took in earlier rounds of the experiment: the median, so that one stopped
or disturbed round says little. Where a stage never finished before, nothing is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from django.utils import timezone

from intraskill_web.experiments.models import Attempt, Experiment, Round, Stage
from intraskill_web.experiments.states import STAGE_ORDER
from jobs.transitions import ACTIVE, DONE, RoundState, State

MIN_DONE = 20  # no time left is told before 5 per cent or this many pieces


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """Seconds left, and the moment at which they are over."""

    seconds: float

    @property
    def ends_at(self) -> datetime:
        """If nothing waits and nobody stops it."""
        return timezone.now() + timedelta(seconds=self.seconds)


def left_of_stage(stage: Stage) -> float | None:
    """Seconds left of a running stage by its own pace, when enough was done to tell."""
    if stage.eta_seconds is None or not stage.total:
        return None
    told = stage.done >= MIN_DONE or stage.done / stage.total >= 0.05
    return stage.eta_seconds if told else None


def usual_seconds(experiment: Experiment) -> dict[str, float]:
    """What each kind of stage took in this experiment, by median (one query). Pauses between the
    attempts of a stage do not count.
    """
    worked: dict[tuple[str, int], float] = {}
    finished = Attempt.objects.filter(
        stage__round__experiment=experiment, stage__state=State.SUCCEEDED
    )
    for attempt in finished.select_related("stage"):
        key = (attempt.stage.kind, attempt.stage_id)
        worked[key] = worked.get(key, 0.0) + (attempt.seconds or 0.0)
    took: dict[str, list[float]] = {}
    for (kind, _stage), seconds in worked.items():
        took.setdefault(kind, []).append(seconds)
    return {kind: median(values) for kind, values in took.items()}


def left_of_round(
    round_: Round, stages: Sequence[Stage], usual: Mapping[str, float] | None = None
) -> TimeLeft | None:
    """Of a round that works now; None when it does not, or when a stage is new to all rounds.

    ``usual`` as of ``usual_seconds``; one query where it is left out.
    """
    if round_.state != RoundState.RUNNING:
        return None
    usual = usual_seconds(round_.experiment) if usual is None else usual
    total = 0.0
    for stage in stages:
        if stage.state in DONE:
            continue
        left = _left(stage, usual)
        if left is None:
            return None
        total += left
    return TimeLeft(total)


def left_of_experiment(
    round_: Round, stages: Sequence[Stage], usual: Mapping[str, float] | None = None
) -> TimeLeft | None:
    """The latest round's rest and the planned rounds after it."""
    if round_.state != RoundState.RUNNING:
        return None
    usual = usual_seconds(round_.experiment) if usual is None else usual
    now = left_of_round(round_, stages, usual)
    if now is None or any(kind not in usual for kind in STAGE_ORDER):
        return None
    later = max(0, round_.experiment.rounds_planned - round_.number - 1)
    return TimeLeft(now.seconds + later * sum(usual[kind] for kind in STAGE_ORDER))


def _left(stage: Stage, usual: Mapping[str, float]) -> float | None:
    if stage.state in ACTIVE:
        told = left_of_stage(stage)
        if told is not None:
            return told
    if stage.kind not in usual:
        return None
    passed = stage.seconds if stage.state in ACTIVE else None
    return max(0.0, usual[stage.kind] - (passed or 0.0))
