"""The only way states change: one legal move of an attempt, and what follows for its parents.

A move is a conditional UPDATE, so of two that race exactly one wins. Stage, round and experiment
are brought up to date in the same transaction.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone

from intraskill_web.experiments.models import Attempt, Experiment, Round, Stage
from jobs import placement
from jobs.transitions import TERMINAL, RoundState, State, round_state, sources


def move(attempt: Attempt, target: State, *, job_id: str | None = None, **fields: Any) -> bool:
    """Move ``attempt`` to ``target`` and set ``fields``; False if its state does not allow it.

    With ``job_id`` only the job that watches the attempt may move it. ``message`` goes to the
    stage.
    """
    now = timezone.now()
    message = fields.pop("message", None)
    with transaction.atomic():
        rows = Attempt.objects.filter(pk=attempt.pk, state__in=sources(target))
        if job_id is not None:
            rows = rows.filter(job_id=job_id)
        if target is State.STARTING:
            fields.setdefault("started_at", now)
        if target in TERMINAL:
            fields.setdefault("ended_at", now)
        if not rows.update(state=target, updated_at=now, **fields):
            return False
        attempt.refresh_from_db()
        _follow(attempt, target, message)
        if target in TERMINAL and placement.release(attempt):
            transaction.on_commit(_hand_on, robust=True)
    return True


def _hand_on() -> None:
    """A GPU became free: whoever waits for it longest gets it."""
    from intraskill_web.experiments.flow import hand_in_waiting

    hand_in_waiting()


def _follow(attempt: Attempt, target: State, message: str | None) -> None:
    stage = attempt.stage
    stage.refresh_from_db()
    stage.state = target
    if message is not None:
        stage.message = message[:500]
    if stage.started_at is None and attempt.started_at is not None:
        stage.started_at = attempt.started_at
    stage.ended_at = attempt.ended_at
    if target in TERMINAL:
        stage.eta_seconds = None
    stage.save()
    refresh_round(stage.round)


def new_attempt(stage: Stage) -> Attempt:
    """The stage's next attempt, ``requested``. Raises IntegrityError while another is active."""
    with transaction.atomic():
        last = stage.attempts.order_by("-number").first()
        attempt = Attempt.objects.create(
            stage=stage, number=last.number + 1 if last else 1, done_at_start=stage.done
        )
        attempt.log_path = f"logs/{attempt.pk}.log"
        attempt.save(update_fields=["log_path"])
        Stage.objects.filter(pk=stage.pk).update(
            state=State.REQUESTED, ended_at=None, message="", updated_at=timezone.now()
        )
        stage.refresh_from_db()
        refresh_round(stage.round)
    return attempt


def refresh_round(round_: Round) -> None:
    """Compute the state of a round, and of its experiment, from the stages."""
    round_.refresh_from_db()
    stages = list(Stage.objects.filter(round=round_).order_by("position"))
    paused = round_.experiment.pause_after_stage
    state = round_state([stage.state or None for stage in stages], paused=paused)
    round_.state = state
    started = [stage.started_at for stage in stages if stage.started_at]
    round_.started_at = min(started, default=None)
    ended = [stage.ended_at for stage in stages if stage.ended_at]
    over = state not in (RoundState.PLANNED, RoundState.RUNNING, RoundState.STOPPING)
    round_.ended_at = max(ended, default=None) if over else None
    round_.save()
    refresh_experiment(round_.experiment)


def refresh_experiment(experiment: Experiment) -> None:
    """The experiment is as its last round is; with rounds still to come it is running."""
    experiment.refresh_from_db()
    last = experiment.rounds.order_by("-number").first()
    if last is None:
        experiment.state = RoundState.PLANNED
    elif last.state == RoundState.SUCCEEDED and last.number + 1 < experiment.rounds_planned:
        waiting = not experiment.auto_continue or experiment.pause_after_stage
        experiment.state = RoundState.STOPPED if waiting else RoundState.RUNNING
    else:
        experiment.state = last.state
    experiment.save(update_fields=["state", "updated_at"])
