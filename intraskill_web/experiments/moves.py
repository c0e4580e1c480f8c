"""The only way states change: one legal move of an attempt, and what follows for its parents.

A move is a conditional UPDATE, so of two that race exactly one wins. Stage, round and experiment
are brought up to date in the same transaction.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from intraskill_web.core.text import storable_json
from intraskill_web.experiments.models import Attempt, Experiment, Round, Stage
from jobs import placement
from jobs.transitions import TERMINAL, RoundState, State, round_state, sources

PARENTS = "stage__round__experiment"


def move(attempt: Attempt, target: State, *, job_id: str | None = None, **fields: Any) -> bool:
    """Move ``attempt`` to ``target`` and set ``fields``; False if its state does not allow it.

    With ``job_id`` only the job that watches the attempt may move it. ``message`` goes to the
    stage.
    """
    now = timezone.now()
    fields = {name: _kept(value) for name, value in fields.items()}
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
        attempt.refresh_from_db(from_queryset=Attempt.objects.select_related(PARENTS))
        _follow(attempt, target, message)
        if target in TERMINAL:
            for host in placement.release(attempt):
                transaction.on_commit(partial(_hand_on, host), robust=True)
    return True


def _kept(value: Any) -> Any:
    """What ends an attempt is told in words of others, such as the last line of a log."""
    return storable_json(value) if isinstance(value, str | dict | list) else value


def _hand_on(host: str) -> None:
    """A host has room now, or free GPUs: who waits for it may have its turn."""
    from intraskill_web.experiments.flow import hand_in_waiting

    hand_in_waiting(host)


def _follow(attempt: Attempt, target: State, message: str | None) -> None:
    """Bring the parents up to date, which were read together with the attempt."""
    stage = attempt.stage
    written = ["state", "started_at", "ended_at", "updated_at"]
    stage.state = target
    if message is not None:  # else it is the watcher's, who may write it this moment
        stage.message = message[:500]
        written.append("message")
    if stage.started_at is None and attempt.started_at is not None:
        stage.started_at = attempt.started_at
    stage.ended_at = attempt.ended_at
    if target in TERMINAL:
        stage.eta_seconds = None
        written.append("eta_seconds")
    stage.save(update_fields=written)
    _follow_stages(stage.round)


def new_attempt(stage: Stage) -> Attempt:
    """The stage's next attempt, ``requested``. Raises IntegrityError while another is active."""
    with transaction.atomic():
        last = stage.attempts.order_by("-number").values_list("number", flat=True).first()
        attempt = Attempt.objects.create(
            stage=stage, number=(last or 0) + 1, done_at_start=stage.done
        )
        attempt.log_path = f"logs/{attempt.pk}.log"
        attempt.save(update_fields=["log_path"])
        stage.refresh_from_db(from_queryset=Stage.objects.select_related("round__experiment"))
        stage.state, stage.ended_at, stage.message = State.REQUESTED, None, ""
        stage.save(update_fields=["state", "ended_at", "message", "updated_at"])
        _follow_stages(stage.round)
    return attempt


def refresh_round(round_: Round) -> None:
    """Compute the state of a round, and of its experiment, from the stages."""
    round_.refresh_from_db(from_queryset=Round.objects.select_related("experiment"))
    _follow_stages(round_)


def _follow_stages(round_: Round) -> None:
    """``refresh_round`` of rows that were read in this transaction."""
    stages = list(Stage.objects.filter(round=round_).order_by("position"))
    paused = round_.experiment.pause_after_stage
    state = round_state([stage.state or None for stage in stages], paused=paused)
    started = [stage.started_at for stage in stages if stage.started_at]
    ended = [stage.ended_at for stage in stages if stage.ended_at]
    over = state not in (RoundState.PLANNED, RoundState.RUNNING, RoundState.STOPPING)
    _set(
        round_,
        state=state,
        started_at=min(started, default=None),
        ended_at=max(ended, default=None) if over else None,
    )
    _follow_rounds(round_.experiment)


def refresh_experiment(experiment: Experiment) -> None:
    """The experiment is as its last round is; with rounds still to come it is running."""
    experiment.refresh_from_db()
    _follow_rounds(experiment)


def _follow_rounds(experiment: Experiment) -> None:
    """``refresh_experiment`` of a row that was read in this transaction."""
    last = experiment.rounds.order_by("-number").only("experiment", "number", "state").first()
    if last is None:
        state = RoundState.STOPPED if experiment.hold_reason else RoundState.PLANNED
    elif last.state == RoundState.SUCCEEDED and last.number + 1 < experiment.rounds_planned:
        waiting = (
            not experiment.auto_continue or experiment.pause_after_stage or experiment.hold_reason
        )
        state = RoundState.STOPPED if waiting else RoundState.RUNNING
    else:
        state = RoundState(last.state)
    _set(experiment, state=state)


def _set(row: Round | Experiment, **values: Any) -> None:
    """Write what changes, and nothing where nothing does."""
    changed = [name for name, value in values.items() if getattr(row, name) != value]
    if changed:
        for name in changed:
            setattr(row, name, values[name])
        row.save(update_fields=[*changed, "updated_at"])
