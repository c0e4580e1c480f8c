"""Questions about experiments that commands and pages share. They read rows, never files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from intraskill_web.core.parameters import ParameterError
from intraskill_web.experiments.models import Attempt, CheckpointScore, Experiment, Round, Stage
from intraskill_web.experiments.took import took
from intraskill_web.gates.models import GateRun


def round_status(round_: Round) -> dict[str, Any]:
    """Where a round stands, stage by stage (two queries)."""
    attempts = Attempt.objects.filter(stage__round=round_).order_by("number")
    stages = list(round_.stages.order_by("position"))
    return status_of(round_, stages, {attempt.stage_id: attempt for attempt in attempts})


def status_of(
    round_: Round, stages: Sequence[Stage], latest: Mapping[int, Attempt]
) -> dict[str, Any]:
    """The same of rows already read; ``latest`` is each stage's newest attempt by stage id."""
    return {
        "experiment": round_.experiment.name,
        "round": round_.number,
        "state": round_.state,
        "stages": [
            {
                "stage": stage.kind,
                "state": stage.state or None,
                "attempt": latest[stage.pk].number if stage.pk in latest else None,
                "done": stage.done,
                "total": stage.total,
                "unit": stage.unit,
                "eta_seconds": stage.eta_seconds,
                "message": stage.message,
                "outcome": stage.outcome,
            }
            for stage in stages
        ],
    }


def round_of(experiment: Experiment, number: int | None) -> Round:
    """Round ``number``, by default the latest. Raises ParameterError when there is none."""
    rounds = experiment.rounds.order_by("-number")
    found = rounds.first() if number is None else rounds.filter(number=number).first()
    if found is None:
        latest = rounds.first()
        has = f"begins with round_start {experiment.name}"
        if latest is not None:
            has = f"has rounds 0 to {latest.number}"
        raise ParameterError(
            "no such round", field="round", value=number, remedy=f"{experiment.name} {has}"
        )
    return found


def require_latest(experiment: Experiment, number: int | None) -> None:
    """Raises ParameterError for a round that is not the latest: only that one can be acted on."""
    latest = round_of(experiment, None)
    if number is not None and number != latest.number:
        raise ParameterError(
            f"only the latest round, {latest.number}, can be acted on",
            field="round",
            value=number,
            remedy=f"Name round {latest.number}, or none",
        )


def gate_coefficients(gate: GateRun | None) -> dict[str, dict[str, Any]]:
    """Intervention id → its coefficient, standard error and verdict."""
    if gate is None:
        return {}
    return {
        row.intervention_id: {"beta": row.coefficient, "se": row.se, "status": row.status}
        for row in gate.contributions.all()
    }


def success(experiment: Experiment, *, step: int, split: str, arm: str) -> float | None:
    """The success of a checkpoint in one arm, or None when it was not measured."""
    score = CheckpointScore.objects.filter(
        experiment=experiment, step=step, split=split, arm=arm
    ).first()
    return None if score is None else score.success


def arms(experiment: Experiment, *, step: int, split: str) -> dict[str, float | None]:
    """The success of a checkpoint in both arms."""
    return {
        f"{arm}_success": success(experiment, step=step, split=split, arm=arm)
        for arm in ("bare", "full")
    }


def round_figures(round_: Round) -> dict[str, Any]:
    """What a finished round came to."""
    outcomes = {stage.kind: stage.outcome for stage in round_.stages.all()}
    step = outcomes.get("train", {}).get("last_step") or 0
    gate = round_.gate_runs.first()
    attempts = Attempt.objects.filter(stage__round=round_)
    worked = took(round_.started_at, round_.ended_at, attempts)
    return {
        "round": round_.number,
        "state": round_.state,
        **arms(round_.experiment, step=step, split="val"),
        "bank_size": outcomes.get("freeze", {}).get("chunks"),
        "selected_size": outcomes.get("select", {}).get("bank_size"),
        "state_id": outcomes.get("freeze", {}).get("state_id"),
        "gate": {
            "coefficients": gate_coefficients(gate),
            "observations": gate.observations if gate else 0,
            "status": gate.status if gate else None,
        },
        "seconds": worked.worked if worked else None,
    }
