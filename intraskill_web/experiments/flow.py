"""How work flows: which stage comes next, how an attempt reaches the queue, how it is withdrawn.

Used by the services, by the job that ends a stage and by the reconciler; records no audit by
itself.
"""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from intraskill_web.experiments.models import Attempt, Experiment, Round, Stage
from intraskill_web.experiments.moves import move, new_attempt, refresh_round
from intraskill_web.experiments.states import STAGE_ORDER
from jobs import placement, queue
from jobs.transitions import ACTIVE, DONE, WAITING, RoundState, State

OPERATOR = "operator"  # the reason of a stop that somebody asked for
WAITS = "waiting for a host"


@transaction.atomic
def new_round(experiment: Experiment, number: int) -> Round:
    """A planned round with its six stages, with the settings of the one before it.

    Raises IntegrityError if it exists, and DoesNotExist if the experiment was withdrawn. Who
    would withdraw it meanwhile waits for the end of the transaction.
    """
    Experiment.objects.select_for_update().get(pk=experiment.pk)
    if experiment.hold_reason:
        experiment.hold_reason = ""
        experiment.save(update_fields=["hold_reason", "updated_at"])
    before = experiment.rounds.filter(number=number - 1).first()
    config = before.config if before else {}
    round_ = Round.objects.create(experiment=experiment, number=number, config=config)
    for kind in STAGE_ORDER:
        Stage.objects.create(round=round_, kind=kind)
    return round_


def advance(experiment: Experiment, *, into_next_round: bool = False) -> Stage | None:
    """Request the next piece of work: the first stage that is not done, or the next round's.

    None when everything planned is done, or the experiment is to wait there. A round begins only
    where ``into_next_round`` asks for it, because its preflight comes first and takes seconds
    (``jobs.next_round``). Call in a transaction.
    """
    experiment.refresh_from_db()
    if experiment.pause_after_stage:
        return None
    round_ = experiment.rounds.order_by("-number").first()
    if round_ is None or round_.state == RoundState.SUCCEEDED:
        number = 0 if round_ is None else round_.number + 1
        if number >= experiment.rounds_planned or not into_next_round:
            return None
        round_ = new_round(experiment, number)
    stage = round_.stages.exclude(state__in=DONE).order_by("position").first()
    if stage is None or stage.state in ACTIVE:
        return None
    request(stage)
    return stage


def request(stage: Stage) -> Attempt:
    """A new attempt at ``stage``, in the queue after the transaction."""
    attempt = new_attempt(stage)
    hand_in(attempt)
    return attempt


def hand_in(attempt: Attempt) -> bool:
    """Make the next job of an attempt and enqueue it, at its host, after the transaction.

    A job that was made before loses its claim: only the job named in the row may watch. False
    while every host that may run it is busy: then it stays ``requested``, in no queue, until
    ``hand_in_waiting`` finds a place. Call in a transaction.
    """
    place = placement.place(attempt)
    if place is None:
        Stage.objects.filter(pk=attempt.stage_id).update(message=WAITS)
        return False
    attempt.executions += 1
    attempt.job_id = queue.job_id_of(attempt.pk, attempt.executions)
    attempt.host, attempt.queue, attempt.queued_at = place.host, place.queue, timezone.now()
    fields = ["executions", "job_id", "host", "queue", "queued_at", "updated_at"]
    attempt.save(update_fields=fields)
    job_id = attempt.job_id
    queue.enqueue_on_commit(
        attempt.pk, job_id, place.queue, lambda: _mark_queued(attempt.pk, job_id)
    )
    return True


def hand_in_waiting(host: str = "") -> int:
    """Hand in what waited for a host and finds one now, the oldest round first; how many.

    With ``host``, which became free, only what may run there is looked at.
    """
    waiting = placement.unplaced(host)
    if not waiting:
        return 0
    found = 0
    room, held = placement.rooms(), placement.leased()
    for attempt in waiting:
        if host in room and max(room[host].values()) < 1:
            break
        if not placement.may_find_place(attempt, room, held):
            continue
        with transaction.atomic():
            rows = Attempt.objects.select_related("stage__round__experiment")
            row = rows.select_for_update(of=("self",)).get(pk=attempt.pk)
            if row.state == State.REQUESTED and not row.queue and hand_in(row):
                found += 1
        room, held = placement.rooms(), placement.leased()
    return found


def _mark_queued(attempt_id: int, job_id: str) -> None:
    move(Attempt(pk=attempt_id), State.QUEUED, job_id=job_id, message="waiting for a worker")


def pause(round_: Round) -> None:
    """Let nothing follow until somebody resumes."""
    Experiment.objects.filter(pk=round_.experiment_id).update(pause_after_stage=True)
    refresh_round(round_)


def active_attempt(experiment: Experiment) -> Attempt | None:
    """The one attempt of the experiment that is not over, if any."""
    return (
        Attempt.objects.filter(stage__round__experiment=experiment, state__in=ACTIVE)
        .select_related("stage__round__experiment")
        .first()
    )


def stop_attempt(attempt: Attempt, reason: str) -> bool:
    """Move towards ``stopped``: at once if no worker took it, else through its watcher."""
    if attempt.state in WAITING:
        job_id = attempt.job_id
        if move(attempt, State.STOPPED, stop_reason=reason, message="stopped before it started"):
            queue.withdraw_on_commit(job_id)
            return True
        attempt.refresh_from_db()  # a worker took it meanwhile
    return move(attempt, State.STOPPING, stop_reason=reason, message="stopping")
