"""Everything the round page shows, read in a fixed number of queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, Max, OuterRef, QuerySet, Subquery
from django.http import Http404

from intraskill_web.core.models import AuditEvent
from intraskill_web.core.prepared import Prepared, moment
from intraskill_web.experiments.config_changes import Changes, composed
from intraskill_web.experiments.models import Attempt, CheckpointScore, Round, Stage
from intraskill_web.gates.models import Contribution, GateRun
from intraskill_web.monitoring import rollouts, series
from intraskill_web.monitoring.models import Preflight, UpdatePoint
from intraskill_web.monitoring.panels.base import EARLIER_NAMES, RoundData
from intraskill_web.skills.models import SkillVersionChunk
from jobs.transitions import ACTIVE


@dataclass(frozen=True, slots=True)
class RoundState:
    """What a poll looks at first: the round, its stages and their attempts (three queries)."""

    round: Round
    stages: list[Stage]
    attempts: list[Attempt]
    has_next: bool
    started_by: str  # the user who asked for the round; empty: nobody, it followed by itself
    updates: int  # optimiser updates of the experiment up to the newest of this round
    checks: list[dict[str, Any]]  # of the preflight that the round began with

    @property
    def passed(self) -> int:
        """Checks of the preflight that nothing was wrong with."""
        return sum(check["state"] == "passed" for check in self.checks)

    def token(self) -> tuple[object, ...]:
        """Changes whenever anything on the page may have changed."""
        times = [s.updated_at for s in self.stages] + [a.updated_at for a in self.attempts]
        return (
            self.round.updated_at,
            self.round.experiment.updated_at,
            max(times, default=None),
            len(self.attempts),
        )

    @property
    def latest(self) -> dict[int, Attempt]:
        """Each stage's newest attempt, by stage id."""
        return {a.stage_id: a for a in sorted(self.attempts, key=lambda a: a.number)}

    @property
    def changes(self) -> Changes:
        """What the round does otherwise than the one before it, or than was planned for the first.

        A clone's changes stand in its first attempt, a retry's in the attempt that it made.
        """
        return composed(a.changes for a in sorted(self.attempts, key=lambda a: a.pk))

    @property
    def active(self) -> Stage | None:
        """The stage that works now."""
        return next((s for s in self.stages if s.state in ACTIVE), None)

    @property
    def current(self) -> Stage | None:
        """The stage that works, else the last that began."""
        begun = [s for s in self.stages if s.state]
        return self.active or (begun[-1] if begun else None)


def quick_token(name: str, number: int) -> tuple[object, ...] | None:
    """The token of a round in one compiled query, for polls; None when there is no such round."""
    row = TOKEN.row(name=name, number=number)
    if row is None:
        return None
    round_, experiment, stage, attempt = map(moment, row[:4])
    return (round_, experiment, max(filter(None, (stage, attempt)), default=None), row[4])


def _token_query(name: str, number: int) -> QuerySet[Any, Any]:
    rounds = Round.objects.filter(experiment__name=name, number=number).order_by()
    return rounds.values_list(
        "updated_at",
        "experiment__updated_at",
        Max("stages__updated_at"),
        Max("stages__attempts__updated_at"),
        Count("stages__attempts", distinct=True),
    )


TOKEN = Prepared(_token_query, {"name": str, "number": int})


def load_state(name: str, number: int) -> RoundState:
    """The round by name and number; 404 when there is none."""
    following = Round.objects.filter(
        experiment=OuterRef("experiment"), number=OuterRef("number") + 1
    )
    starts = AuditEvent.objects.filter(
        action="round.start", experiment=name, subject=f"round {number}",
        at__gte=OuterRef("experiment__created_at"),  # not of one of its name that was deleted
    )  # fmt: skip
    looked = Preflight.objects.filter(target=f"{name}/round-{number:03d}")
    updates = UpdatePoint.objects.filter(round=OuterRef("pk")).order_by("-update")
    rounds = Round.objects.select_related("experiment__owner", "curriculum__version").annotate(
        has_next=Exists(following),
        started_by=Subquery(starts.values("actor__username")[:1]),
        updates=Subquery(updates.values("update")[:1]),
        checks=Subquery(looked.values("checks")[:1]),
    )
    try:
        round_ = rounds.get(experiment__name=name, number=number)
    except Round.DoesNotExist:
        raise Http404(f"{name} / {number}") from None
    stages = list(round_.stages.all())
    by_id = {stage.pk: stage for stage in stages}
    attempts = list(Attempt.objects.filter(stage__round=round_).order_by("stage_id", "number"))
    for stage in stages:
        stage.round = round_
    for attempt in attempts:
        attempt.stage = by_id[attempt.stage_id]
    return RoundState(
        round_, stages, attempts, bool(round_.has_next),
        started_by=round_.started_by or "", updates=round_.updates or 0,
        checks=round_.checks or [],
    )  # fmt: skip


def load_data(round_: Round, *, episodes: bool = True) -> RoundData:
    """The monitoring facts: metrics, episode counts, chunk titles (three queries).

    Without ``episodes`` nothing is counted, which is all that the signals need.
    """
    steps = int(round_.experiment.config.get("train", {}).get("steps", 0)) or 1
    first = round_.number * steps + 1
    curriculum = getattr(round_, "curriculum", None)
    titles: dict[str, str] = {}
    if curriculum is not None:
        entries = SkillVersionChunk.objects.filter(version=curriculum.version).select_related(
            "revision"
        )
        titles = {e.revision.skill_id: e.revision.title or e.revision.skill_id for e in entries}
    own, earlier = series.of_round(round_, first, EARLIER_NAMES)
    return RoundData(
        round=round_,
        first_step=first,
        last_step=first + steps - 1,
        series=own,
        earlier=earlier,
        rollouts=rollouts.of_round(round_) if episodes else rollouts.Rollouts(()),
        titles=titles,
    )


@dataclass(frozen=True, slots=True)
class GateFacts:
    """The gates up to this round, and the contributions of its own (two queries)."""

    runs: list[GateRun]
    contributions: list[Contribution]

    def of(self, round_: Round) -> GateRun | None:
        """The gate of ``round_``."""
        return next((g for g in self.runs if g.round_id == round_.pk), None)


def load_gates(round_: Round) -> GateFacts:
    """Gate runs of this experiment up to ``round_``, oldest first."""
    runs = list(
        GateRun.objects.filter(
            round__experiment=round_.experiment, round__number__lte=round_.number
        )
        .select_related("round")
        .order_by("round__number", "id")
    )
    own = next((g for g in runs if g.round_id == round_.pk), None)
    rows = list(own.contributions.order_by("rank", "order")) if own else []
    return GateFacts(runs, rows)


def bare_scores(round_: Round) -> list[CheckpointScore]:
    """Bare validation of the checkpoints up to ``round_`` (one query)."""
    return list(
        CheckpointScore.objects.filter(
            experiment=round_.experiment, round__number__lte=round_.number, split="val", arm="bare"
        ).order_by("step")
    )


Config = Mapping[str, Any]
