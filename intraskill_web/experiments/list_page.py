"""The rows of the list of experiments, in a fixed number of queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Prefetch

from intraskill_web.experiments.checkpoints import score_episodes
from intraskill_web.experiments.models import CheckpointScore, Experiment, Round, Stage
from intraskill_web.experiments.states import shown_state
from intraskill_web.experiments.waiting import Line, line_of
from intraskill_web.skills.models import SkillVersion
from jobs.transitions import ACTIVE

LIMIT = 100


@dataclass(frozen=True, slots=True)
class ExperimentRow:
    """One experiment in the list."""

    experiment: Experiment
    last: Round | None
    stage: Stage | None
    finished: int
    first: CheckpointScore | None
    newest: CheckpointScore | None
    full: CheckpointScore | None
    banks: list[int]
    newest_href: str = ""
    full_href: str = ""
    waits_for: str = ""

    @property
    def shown(self) -> str:
        """Its state: what waits for its turn does not run."""
        return shown_state(self.experiment.state, self.stage.state if self.stage else None)

    def data(self) -> dict[str, Any]:
        """For the JSON twin."""
        return {
            "name": self.experiment.name,
            "state": self.experiment.state,
            "engine": self.experiment.engine,
            "seed": self.experiment.seed,
            "rounds_planned": self.experiment.rounds_planned,
            "rounds_finished": self.finished,
            "stage": self.stage.kind if self.stage else None,
            "waits_for": self.waits_for or None,
            "done": self.stage.done if self.stage else None,
            "total": self.stage.total if self.stage else None,
            "bare_success_first": self.first.success if self.first else None,
            "bare_success": self.newest.success if self.newest else None,
            "full_success": self.full.success if self.full else None,
            "bank_sizes": self.banks,
            "created_at": self.experiment.created_at,
        }


def experiment_rows() -> list[ExperimentRow]:
    """The newest experiments: five queries whatever their number, seven where one waits."""
    scores = CheckpointScore.objects.filter(split="val").order_by("step")
    versions = SkillVersion.objects.annotate(size=Count("entries")).order_by("number")
    rounds = Round.objects.order_by("number")
    found = Experiment.objects.select_related("owner").prefetch_related(
        Prefetch("rounds", rounds),
        Prefetch("scores", scores),
        Prefetch("skill_versions", versions),
    )[:LIMIT]
    experiments = list(found)
    active = Stage.objects.filter(
        round__experiment__in=[e.pk for e in experiments], state__in=ACTIVE
    ).select_related("round")
    by_experiment = {stage.round.experiment_id: stage for stage in active}
    line = line_of(by_experiment.values())
    return [_row(experiment, by_experiment.get(experiment.pk), line) for experiment in experiments]


def score_href(name: str, rounds: list[Round], score: CheckpointScore) -> str:
    """The episodes behind a score; ``rounds`` are the experiment's."""
    number = next(r.number for r in rounds if r.pk == score.round_id)
    return score_episodes(name, number, score)


def _row(experiment: Experiment, stage: Stage | None, line: Line | None) -> ExperimentRow:
    rounds = list(experiment.rounds.all())
    scores: list[CheckpointScore] = list(experiment.scores.all())
    versions: Any = experiment.skill_versions.all()
    bare = [score for score in scores if score.arm == "bare"]
    full = [score for score in scores if score.arm == "full"]
    return ExperimentRow(
        experiment=experiment,
        last=rounds[-1] if rounds else None,
        stage=stage,
        finished=sum(r.state == "succeeded" for r in rounds),
        first=bare[0] if bare else None,
        newest=bare[-1] if bare else None,
        full=full[-1] if full else None,
        banks=[version.size for version in versions],
        newest_href=score_href(experiment.name, rounds, bare[-1]) if bare else "",
        full_href=score_href(experiment.name, rounds, full[-1]) if full else "",
        waits_for=line.of_stage(stage) if line else "",
    )
