"""How long a round and an experiment still take, from what their stages took before.

A stage tells its own time left from its pace (``Stage.eta_seconds``). Stages that have not begun
take what the same stage took in earlier rounds of the experiment: the median, so that one stopped
or disturbed round says little. In a first round there is none; what plays episodes is then told
from its planned number and the pace of the episodes played so far, and the rest is left out, so the
sum is a lower bound and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from statistics import median
from typing import Any

from django.utils import timezone

from intraskill_web.experiments.models import Attempt, Experiment, Round, Stage
from intraskill_web.experiments.planned import planned_episodes
from intraskill_web.experiments.states import STAGE_ORDER
from jobs.transitions import ACTIVE, DONE, RoundState, State

EVALUATIONS = ("freeze", "validate")  # stages whose episodes are all alike
PACE_ATTEMPTS = 30  # about five rounds
MIN_DONE = 20  # no time left is told before 5 per cent or this many pieces


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """Seconds left, and the moment at which they are over. ``at_least``: something is not in it."""

    seconds: float
    at_least: bool = False

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


@dataclass(frozen=True, slots=True)
class Pace:
    """What stages took, by kind (the median), and the seconds of one evaluation episode."""

    usual: Mapping[str, float]
    per_episode: float | None = None

    def of(self, kind: str, config: Mapping[str, Any]) -> tuple[float, bool]:
        """(seconds of a whole stage of this kind, whether that is all of it)."""
        if kind in self.usual:
            return self.usual[kind], True
        episodes = planned_episodes(kind, config)
        if self.per_episode is None or episodes is None:
            return 0.0, False
        return episodes * self.per_episode, False


def pace_of(experiment: Experiment) -> Pace:
    """How fast this experiment was so far (one query, read as far as it is needed)."""
    rows = Attempt.objects.filter(stage__round__experiment=experiment)
    newest_first = rows.select_related("stage").order_by("-pk")
    return pace_from(newest_first.iterator(chunk_size=PACE_ATTEMPTS))


def pace_from(attempts: Iterable[Attempt]) -> Pace:
    """The same from attempts with their stages, the newest first, which a page has anyway. Pauses
    between attempts do not count, and a pace is of late.
    """
    worked: dict[int, float] = {}
    stages: dict[int, Stage] = {}
    telling = (a for a in attempts if a.stage.state == State.SUCCEEDED or a.stage.kind == "freeze")
    for attempt in islice(telling, PACE_ATTEMPTS):
        stages[attempt.stage_id] = attempt.stage
        worked[attempt.stage_id] = worked.get(attempt.stage_id, 0.0) + (attempt.seconds or 0.0)
    took: dict[str, list[float]] = {}
    rates: list[float] = []
    for pk, stage in stages.items():
        if stage.state == State.SUCCEEDED:
            took.setdefault(stage.kind, []).append(worked[pk])
        if stage.unit == "episode" and stage.done >= MIN_DONE and stage.kind in EVALUATIONS:
            rates.append(worked[pk] / stage.done)
    return Pace(
        {kind: median(values) for kind, values in took.items()}, median(rates) if rates else None
    )


def left_of_round(
    round_: Round, stages: Sequence[Stage], pace: Pace | None = None
) -> TimeLeft | None:
    """Of a round that works now; None when it does not, or when nothing can be told.

    ``pace`` as of ``pace_of``; one query where it is left out.
    """
    if round_.state != RoundState.RUNNING:
        return None
    pace = pace_of(round_.experiment) if pace is None else pace
    total, whole = 0.0, True
    for stage in stages:
        if stage.state in DONE:
            continue
        seconds, known = _left(stage, pace, round_.experiment.config)
        total, whole = total + seconds, whole and known
    return TimeLeft(total, not whole) if total or whole else None


def left_of_experiment(
    round_: Round, stages: Sequence[Stage], pace: Pace | None = None
) -> TimeLeft | None:
    """The latest round's rest and the planned rounds after it."""
    if round_.state != RoundState.RUNNING:
        return None
    experiment = round_.experiment
    pace = pace_of(experiment) if pace is None else pace
    now = left_of_round(round_, stages, pace)
    if now is None:
        return None
    later = max(0, experiment.rounds_planned - round_.number - 1)
    one = [pace.of(kind, experiment.config) for kind in STAGE_ORDER]
    whole = all(known for _seconds, known in one) or not later
    total = now.seconds + later * sum(seconds for seconds, _known in one)
    return TimeLeft(total, now.at_least or not whole)


def _left(stage: Stage, pace: Pace, config: Mapping[str, Any]) -> tuple[float, bool]:
    if stage.state in ACTIVE:
        told = left_of_stage(stage)
        if told is not None:
            return told, True
    seconds, known = pace.of(stage.kind, config)
    passed = stage.seconds if stage.state in ACTIVE else None
    return max(0.0, seconds - (passed or 0.0)), known
