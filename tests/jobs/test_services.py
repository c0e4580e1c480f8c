"""What people may do, what is refused, and what the audit trail says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError

from intraskill_web.core.models import AuditEvent
from intraskill_web.experiments import making, planning, services
from intraskill_web.experiments.models import Attempt, Experiment, Stage
from intraskill_web.experiments.moves import move, new_attempt
from jobs.transitions import State
from trainer.errors import InputError
from trainer.experiment_config import ExperimentConfig

Jobs = list[tuple[int, str]]


def finish(attempt: Attempt, state: State = State.SUCCEEDED, **fields: Any) -> None:
    for step in (State.STARTING, State.RUNNING, state):
        assert move(attempt, step, **(fields if step is state else {}))


def latest() -> Attempt:
    return Attempt.objects.latest("pk")


def test_an_experiment_is_frozen_with_copies_of_its_start(
    experiment: Experiment, config: ExperimentConfig
) -> None:
    frozen = json.loads((experiment.folder / "experiment.json").read_text())
    assert frozen == experiment.config
    assert frozen["start"] == {
        "skillbank": "start/skillbank.json",
        "checkpoint": "start/checkpoint",
    }
    assert (experiment.folder / "start" / "skillbank.json").read_bytes() == (
        config.start.skillbank.read_bytes()
    )
    assert len(experiment.config_sha256) == 64


def test_a_taken_name_is_refused(experiment: Experiment, config: ExperimentConfig) -> None:
    with pytest.raises(InputError, match="exists"):
        making.create_experiment(config)
    assert Experiment.objects.count() == 1


def test_a_missing_checkpoint_is_named(
    transactional_db: None, home: Any, config: ExperimentConfig
) -> None:
    config.start.checkpoint.joinpath("checkpoint.json").unlink()
    config.start.checkpoint.rmdir()
    with pytest.raises(InputError, match="checkpoint"):
        making.create_experiment(config)


def test_a_round_begins_with_its_first_stage_in_the_queue(
    experiment: Experiment, handed_in: Jobs, operator: User
) -> None:
    round_ = services.start_round(experiment, actor=operator)
    assert [stage.kind for stage in round_.stages.order_by("position")] == [
        "freeze",
        "train",
        "analyse",
        "validate",
        "gate",
        "select",
    ]
    attempt = latest()
    assert handed_in == [(attempt.pk, attempt.job_id)]
    assert attempt.state == State.QUEUED
    event = AuditEvent.objects.get(action="round.start")
    assert (event.actor, event.experiment, event.subject) == (operator, "small", "round 0")


def test_of_two_starts_exactly_one_runs(experiment: Experiment, handed_in: Jobs) -> None:
    services.start_round(experiment)
    with pytest.raises(InputError, match="round 0 is running"):
        services.start_round(experiment)
    assert len(handed_in) == 1


def test_two_active_attempts_of_a_stage_are_impossible(
    experiment: Experiment, handed_in: Jobs
) -> None:
    services.start_round(experiment)
    with pytest.raises(IntegrityError):
        new_attempt(latest().stage)


def test_rounds_start_in_order(experiment: Experiment, handed_in: Jobs) -> None:
    with pytest.raises(InputError, match="next round is 0"):
        services.start_round(experiment, 1)


def test_only_planned_rounds_start(experiment: Experiment, handed_in: Jobs) -> None:
    planning.set_rounds_planned(experiment, 1)
    services.start_round(experiment)
    for kind in ("freeze", "train", "analyse", "validate", "gate", "select"):
        attempt = Attempt.objects.filter(stage__kind=kind).first() or new_attempt(
            Stage.objects.get(kind=kind)
        )
        finish(attempt)
    with pytest.raises(InputError, match="the planned round is finished"):
        services.start_round(experiment)
    with pytest.raises(InputError, match="1 rounds have begun"):
        planning.set_rounds_planned(experiment, 0)


def test_resuming_a_failed_stage_is_a_new_attempt(
    experiment: Experiment, handed_in: Jobs, operator: User
) -> None:
    services.start_round(experiment)
    finish(latest(), State.FAILED, error="disk full")
    services.resume_round(experiment, actor=operator)
    first, second = Attempt.objects.order_by("number")
    assert (first.state, second.state) == (State.FAILED, State.QUEUED)
    assert second.job_id != first.job_id
    experiment.refresh_from_db()
    assert experiment.state == "running"


def test_resuming_what_runs_is_refused(experiment: Experiment, handed_in: Jobs) -> None:
    services.start_round(experiment)
    with pytest.raises(InputError, match="already active"):
        services.resume_round(experiment)


def test_stopping_needs_something_that_runs(experiment: Experiment, handed_in: Jobs) -> None:
    assert not services.stop_round(experiment)
    services.start_round(experiment)
    move(latest(), State.STARTING)
    assert services.stop_round(experiment)
    assert not services.stop_round(experiment), "it stops already"
    assert latest().state == State.STOPPING


def test_a_terminal_attempt_never_moves(experiment: Experiment, handed_in: Jobs) -> None:
    services.start_round(experiment)
    attempt = latest()
    finish(attempt, State.FAILED)
    for target in State:
        assert not move(attempt, target)
    attempt.refresh_from_db()
    assert attempt.state == State.FAILED


def test_a_log_line_that_no_database_holds_still_ends_its_attempt(
    experiment: Experiment, handed_in: Jobs
) -> None:
    services.start_round(experiment)
    attempt = latest()
    finish(attempt, State.FAILED, error="cut \0 short", message="cut \0 short")
    attempt.refresh_from_db()
    assert (attempt.state, attempt.error) == (State.FAILED, "cut \ufffd short")
    assert attempt.stage.message == attempt.error


def test_only_the_watching_job_moves_an_attempt(experiment: Experiment, handed_in: Jobs) -> None:
    services.start_round(experiment)
    attempt = latest()
    assert not move(attempt, State.STARTING, job_id="another")
    assert move(attempt, State.STARTING, job_id=attempt.job_id)


def test_without_auto_continue_the_next_round_waits(
    experiment: Experiment, handed_in: Jobs
) -> None:
    from intraskill_web.experiments.flow import advance

    experiment.auto_continue = False
    experiment.save()
    services.start_round(experiment)
    for kind in ("freeze", "train", "analyse", "validate", "gate", "select"):
        attempt = Attempt.objects.filter(stage__kind=kind).first() or new_attempt(
            Stage.objects.get(kind=kind)
        )
        finish(attempt)
    assert advance(experiment) is None
    experiment.refresh_from_db()
    assert experiment.state == "stopped"
    services.start_round(experiment)
    assert experiment.rounds.count() == 2


@pytest.mark.parametrize("imported", ["published", "run folder"])
def test_an_imported_experiment_is_read_and_never_run(
    experiment: Experiment, handed_in: Jobs, imported: str
) -> None:
    services.start_round(experiment)
    finish(latest(), State.FAILED)
    experiment.config = {**experiment.config, "imported": imported}
    experiment.save()
    for act in (
        lambda: services.start_round(experiment),
        lambda: services.resume_round(experiment),
        lambda: planning.set_rounds_planned(experiment, 3),
        lambda: planning.pause_after_stage(experiment, True),
    ):
        with pytest.raises(InputError, match=r"imported from .*can be read, not run"):
            act()
    assert len(handed_in) == 1


def test_a_pause_between_two_stages_reads_as_stopped(
    experiment: Experiment, handed_in: Jobs
) -> None:
    round_ = services.start_round(experiment)
    planning.pause_after_stage(experiment, True)
    experiment.refresh_from_db()
    assert experiment.state == "running", "the stage still runs"
    finish(latest())
    round_.refresh_from_db()
    assert round_.state == "stopped"
    services.resume_round(experiment)
    round_.refresh_from_db()
    assert (round_.state, latest().stage.kind) == ("running", "train")
