"""Builds the page of one sweep: arms compared, and what each experiment does or waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from intraskill_web.episodes.links import episodes_url
from intraskill_web.experiments.models import CheckpointScore, Experiment, Stage, Sweep
from intraskill_web.experiments.states import shown_state
from intraskill_web.experiments.sweep_page import arms_of, chart, comparison, legend
from intraskill_web.experiments.waiting import Line
from intraskill_web.monitoring.preflight.red import worded_refusal
from jobs.transitions import ACTIVE, RoundState


@dataclass(frozen=True, slots=True)
class Run:
    """One experiment of an arm: what it does now, and its newest bare success."""

    experiment: Experiment
    state: str  # as shown: what waits for its turn does not run
    stage: Stage | None  # that works or waits
    why: str  # what it waits for
    newest: CheckpointScore | None
    href: str  # the episodes behind it
    begun: bool  # whether its first round exists

    @property
    def starts(self) -> bool:
        """Whether its first round begins by itself as soon as its preflight was looked at."""
        e = self.experiment
        return not (self.begun or e.hold_reason or e.pause_after_stage) and e.auto_continue

    def data(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "state": self.state,
            "stage": self.stage.kind if self.stage else None,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class SweepView:
    """What the view renders."""

    sweep: Sweep
    context: dict[str, Any]
    runs: list[Run]

    @property
    def active(self) -> bool:
        """Whether anything of it works, waits or begins."""
        lively = (RoundState.RUNNING, RoundState.STOPPING)
        return any(run.starts or run.experiment.state in lively for run in self.runs)

    def data(self) -> dict[str, Any]:
        """The JSON twin."""
        return {
            **summary(self.sweep, [run.experiment for run in self.runs]),
            "states": {run.experiment.name: run.state for run in self.runs},
            "runs": {run.experiment.name: run.data() for run in self.runs},
            "comparison": self.context["table"].data(),
        }


def build(sweep: Sweep, line: Line) -> SweepView:
    """The page. Four queries: experiments, which have begun, scores, active stages."""
    experiments = list(sweep.experiments.order_by("pk"))
    begun = set(sweep.experiments.exclude(rounds=None).values_list("pk", flat=True))
    scores = list(
        CheckpointScore.objects.filter(experiment__sweep=sweep, arm="bare").select_related("round")
    )
    stages = Stage.objects.filter(round__experiment__sweep=sweep, state__in=ACTIVE)
    working = {stage.round.experiment_id: stage for stage in stages.select_related("round")}
    runs = [_run(e, e.pk in begun, working.get(e.pk), line, scores) for e in experiments]
    arms = arms_of(sweep.arms, experiments, scores)
    by_id = {run.experiment.pk: run for run in runs}
    context = {
        "sweep": sweep,
        "arms": arms,
        "chart": chart(arms),
        "legend": legend(arms),
        "table": comparison(arms),
        "groups": [(arm, [by_id[e.pk] for e in arm.experiments]) for arm in arms],
        "done": sum(e.state == RoundState.SUCCEEDED for e in experiments),
        "total": len(experiments),
        "starting": _starting(sweep, runs),
        "withdrawable": sum(not run.begun for run in runs),
        "crumbs": [
            (_("Experiments"), reverse("experiments:list")),
            (_("Sweeps"), reverse("experiments:sweeps")),
            (sweep.name, ""),
        ],
    }
    return SweepView(sweep, context, runs)


def summary(sweep: Sweep, experiments: Sequence[Experiment] | None = None) -> dict[str, Any]:
    """A sweep for JSON."""
    own = sweep.experiments.order_by("pk") if experiments is None else experiments
    return {
        "sweep": sweep.name,
        "arms": sweep.arms,
        "seeds": sweep.seeds,
        "experiments": [e.name for e in own],
    }


def _starting(sweep: Sweep, runs: Sequence[Run]) -> dict[str, Any] | None:
    """How far the beginning of its experiments is; None when it is over."""
    following = next((run for run in runs if run.starts), None)
    if following is None:
        return None
    return {
        "done": sum(not run.starts for run in runs),
        "next": following.experiment,
        "looking": sweep.is_claimed,
    }


def _run(
    experiment: Experiment,
    begun: bool,
    stage: Stage | None,
    line: Line,
    scores: Sequence[CheckpointScore],
) -> Run:
    own = [s for s in scores if s.experiment_id == experiment.pk]
    own.sort(key=lambda s: (s.split == "test", s.step))
    newest = own[-1] if own else None
    href = ""
    if newest is not None:
        purpose = "test" if newest.split == "test" else "bare" if newest.step else "baseline"
        href = episodes_url(
            experiment=experiment.name, round=newest.round.number, purpose=purpose, arm="bare"
        )
    state = shown_state(experiment.state, stage.state if stage else None)
    why = line.of_stage(stage) or worded_refusal(experiment.hold_reason)
    return Run(experiment, state, stage, why, newest, href, begun)
