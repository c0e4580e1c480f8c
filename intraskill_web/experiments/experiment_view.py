"""Builds the experiment page from rows: context for the template, data for the twin, tables for
CSV.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Prefetch, prefetch_related_objects
from django.urls import reverse
from django.utils.translation import gettext as _

from intraskill_web.core.tables import Table
from intraskill_web.experiments.actions import buttons
from intraskill_web.experiments.button import Button
from intraskill_web.experiments.checkpoints import (
    checkpoint_chart,
    checkpoint_rows,
    checkpoint_table,
)
from intraskill_web.experiments.models import Attempt, CheckpointScore, Experiment, Round, Stage
from intraskill_web.experiments.round_rows import RoundRow, round_rows, rounds_table
from intraskill_web.experiments.states import shown_state
from intraskill_web.experiments.survival import survival, survival_table
from intraskill_web.experiments.time_left import TimeLeft, left_of_experiment, pace_from
from intraskill_web.experiments.waiting import Line
from intraskill_web.gates.models import GateRun
from intraskill_web.skills.models import SkillVersion
from jobs.transitions import ACTIVE

MOST_ROWS = 12  # of the newest rounds on the page; all of them are one click away
MOST_COLUMNS = 8  # of the newest gates in the matrix


@dataclass(frozen=True, slots=True)
class ExperimentView:
    """What the view renders."""

    experiment: Experiment
    context: dict[str, Any]
    tables: Callable[[], dict[str, Table]]  # made when a twin asks for them
    rounds: list[RoundRow]
    buttons: list[Button]
    active: bool
    left: TimeLeft | None

    def data(self) -> dict[str, Any]:
        """The JSON twin."""
        tables = self.tables()
        return {
            "name": self.experiment.name,
            "state": self.experiment.state,
            "engine": self.experiment.engine,
            "seed": self.experiment.seed,
            "config": self.experiment.config,
            "config_sha256": self.experiment.config_sha256,
            "rounds_planned": self.experiment.rounds_planned,
            "eta_seconds": self.left.seconds if self.left else None,
            "checkpoints": tables["checkpoints"].data(),
            "survival": tables["survival"].data(),
            "rounds": tables["rounds"].data(),
            "actions": [button.data() for button in self.buttons],
        }


def build(
    experiment: Experiment, line: Line | None = None, *, operate: bool, whole: bool = True
) -> ExperimentView:
    """The page; unless ``whole``, tables hold the newest rounds only, however long it has run.

    ``line`` is that in which the experiment waits; None when it does not.
    At most eight queries: rounds, stages, attempts, scores, versions, gates, contributions, and the
    episodes of checkpoints whose gap is not known yet.
    """
    rounds = _rounds(experiment, whole)
    scores = list(CheckpointScore.objects.filter(experiment=experiment).select_related("round"))
    versions = list(
        SkillVersion.objects.filter(experiment=experiment)
        .annotate(size=Count("entries"))
        .select_related("from_round")
        .order_by("number")
    )
    gates = list(
        GateRun.objects.filter(round__experiment=experiment, status="complete")
        .select_related("round")
        .order_by("round__number")
    )
    matrix_gates = gates if whole else gates[-MOST_COLUMNS:]
    prefetch_related_objects(matrix_gates, "contributions")
    last = rounds[-1] if rounds else None
    stages = list(last.stages.all()) if last else []
    active = next((s for s in stages if s.state in ACTIVE), None)
    checkpoints = checkpoint_rows(experiment, scores)
    matrix = survival(versions, matrix_gates)
    attempts = _attempts(rounds)
    lines = round_rows(rounds, versions, gates, scores, attempts)
    made = buttons(experiment, last, stages, may_operate=operate)
    steps = int(experiment.config.get("train", {}).get("steps", 0))

    def tables() -> dict[str, Table]:
        return {
            "checkpoints": checkpoint_table(checkpoints),
            "survival": survival_table(matrix),
            "rounds": rounds_table(lines),
        }

    left = left_of_experiment(last, stages, pace_from(attempts)) if last else None
    context = {
        "experiment": experiment,
        "crumbs": [(_("Experiments"), reverse("experiments:list")), (experiment.name, "")],
        "rounds": lines,
        "begun": last.number + 1 if last else 0,
        "more_gates": len(gates) - len(matrix_gates),
        "last": last,
        "active_stage": active,
        "shown": shown_state(experiment.state, active.state if active else None),
        "waits_for": line.of_stage(active) if line else "",
        "active": active is not None,
        "left": left,
        "buttons": made,
        "checkpoints": checkpoints if whole else checkpoints[-MOST_ROWS:],
        "validation": [row for row in checkpoints if row.split == "val"],
        "test": [row for row in checkpoints if row.split == "test"],
        "chart": checkpoint_chart(checkpoints, steps * experiment.rounds_planned),
        "survival": matrix,
        "versions": versions if whole else versions[-MOST_ROWS:],
        "settings": settings_of(experiment.config),
        "may_operate": operate,
    }
    return ExperimentView(experiment, context, tables, lines, made, active is not None, left)


def _attempts(rounds: Sequence[Round]) -> list[Attempt]:
    """When every attempt at these rounds worked, the newest first, each with its stage."""
    found = Attempt.objects.filter(stage__round__in=[item.pk for item in rounds])
    parts = ("round", "kind", "state", "unit", "done")
    only = ("started_at", "ended_at", *(f"stage__{part}" for part in parts))
    return list(found.select_related("stage").only(*only).order_by("-pk"))


def _rounds(experiment: Experiment, whole: bool) -> list[Round]:
    """The rounds with their stages, the oldest first; unless ``whole`` only the newest."""
    stages = Prefetch("stages", Stage.objects.order_by("position"))
    found = experiment.rounds.order_by("-number").prefetch_related(stages)
    rounds = list(found if whole else found[:MOST_ROWS])[::-1]
    for round_ in rounds:
        round_.experiment = experiment
    return rounds


def settings_of(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The settings people ask about first; the whole is in the JSON twin."""
    train, rollout = config.get("train", {}), config.get("train", {}).get("rollout", {})
    optimiser, evaluation = train.get("optimiser", {}), config.get("evaluation", {})
    curriculum, gate = config.get("curriculum", {}), config.get("gate", {})
    every = _("all")
    lines = [
        (_("Steps a round"), train.get("steps")),
        (_("Groups a step, kept"), _pair(rollout, "groups_per_wave", "groups_kept")),
        (_("Episodes a group"), rollout.get("episodes_per_group")),
        (_("Learning rate"), optimiser.get("learning_rate")),
        (_("Updates a step"), optimiser.get("updates_per_step")),
        (_("q"), curriculum.get("skill_free_probability")),
        (_("rho, from and to"), _pair(curriculum, "rho_min", "rho_max")),
        (_("Validation tasks, bare"), evaluation.get("bare_tasks", every) or every),
        (_("Validation tasks, full skill"), evaluation.get("full_tasks", every) or every),
        (_("Gate profile"), gate.get("profile")),
        (_("Budget of the bank"), gate.get("active_skill_budget")),
    ]
    return [(name, str(value)) for name, value in lines if value is not None]


def _pair(values: Mapping[str, Any], first: str, second: str) -> str | None:
    if first not in values or second not in values:
        return None
    return f"{values[first]}, {values[second]}"
