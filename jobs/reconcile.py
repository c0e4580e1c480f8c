"""The reconciler: makes rows true again after anything died, and goes on where that is safe.

One process, one pass every few seconds. It compares rows with the queue, with the watchers and
with the process groups of this host, and is the only writer of ``lost``. It judges by its own
eyes: what rq believes about a job is never taken for the truth.

What it does with an attempt that is not over:
- the queue lost its job, or never got it → the job is handed in again;
- its watcher died and its process lives, or left word how it ended → a new watcher adopts it;
- its watcher died and its process vanished without a word → ``lost``;
- it runs on another host, which fell silent → ``lost`` (``silence.py``), and what of it still
  lives when that host returns is ended there (``fence.py``).

What it does with one that is over: an attempt that was lost, killed by a signal or interrupted by
a shutdown continues as a new attempt, because every stage continues where its files end. After
ten such attempts in a row that brought the stage no further it is left to people.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError, IntegrityError, transaction
from django.utils import timezone
from redis.exceptions import RedisError

from intraskill_web.core import audit
from intraskill_web.experiments import flow
from intraskill_web.experiments.models import Attempt, Experiment, Stage
from intraskill_web.experiments.moves import move, refresh_round
from intraskill_web.monitoring import watcher
from jobs import fence, left_over, next_round, placement, process, queue, silence, sweeps
from jobs.transitions import ACTIVE, WAITING, RoundState, State

INTERVAL_S = 15.0
URGENT_INTERVAL_S = 2.0
SETTLE_S = 3.0  # a row this young may simply not have reached the queue yet
RESUMES_WITHOUT_PROGRESS = 10
SHUTDOWN = "shutdown"

logger = logging.getLogger(__name__)
_silence = silence.Silence()
_left_over = left_over.LeftOver()
_asked_to_end: dict[int, float | None] = {}  # lost attempts of this host, see fence.end_lost


def run_forever() -> None:
    """A full pass every 15 s, and one over orphans and stops every 2 s, until SIGTERM."""
    full_at = 0.0
    while True:
        now = time.monotonic()
        try:
            if now >= full_at:
                full_at = now + INTERVAL_S
                reconcile()
                watcher.kick()
            else:
                _heal_watched()
            sweeps.begin_left_over()
            _hand_in_left_over()
        except DatabaseError:
            logger.exception("the database did not answer; trying again")
        time.sleep(URGENT_INTERVAL_S)


def reconcile() -> None:
    """One full pass. Raises DatabaseError when the database does not answer."""
    _heal_watched()
    fence.end_lost(_asked_to_end)
    silence.call_lost(_silence.look())
    try:
        _heal_waiting()
    except RedisError as error:
        logger.warning("the queue is down: %s", error)
    _resume_interrupted()
    _advance_idle()
    next_round.begin_left_over()
    silence.say_what_waits()


def _hand_in_left_over() -> None:
    """Work that is no attempt."""
    try:
        _left_over.hand_in()
    except RedisError as error:
        logger.warning("the queue is down: %s", error)


def _heal_waiting() -> None:
    """Hand in again what waits for a worker but is not in the queue, or waits at a dead host.

    Every host's reconciler looks after what waits there, and any of them after the rest.
    """
    up = set(placement.hosts_up())
    placed = Attempt.objects.filter(state__in=WAITING).exclude(queue="")
    for attempt in placed.select_related("stage__round__experiment"):
        elsewhere = attempt.host != settings.INTRASKILL_HOST_NAME and attempt.host in up
        if elsewhere or not _settled(attempt) or _has_watcher(attempt):
            continue
        if queue.is_waiting(attempt.job_id) and not _may_move(attempt, up):
            continue
        with transaction.atomic():
            row = Attempt.objects.select_for_update().get(pk=attempt.pk)
            if row.state in WAITING and row.job_id == attempt.job_id:
                flow.hand_in(row)
                queue.withdraw_on_commit(attempt.job_id)
    flow.hand_in_waiting()


def _may_move(attempt: Attempt, up: set[str]) -> bool:
    """Whether an attempt that waits at a dead host may go to a living one."""
    return bool(up) and attempt.host not in up and not attempt.stage.round.experiment.host


def _heal_watched() -> None:
    """Find attempts of this host whose watcher is gone: adopt them, or call them lost."""
    mine = Attempt.objects.filter(
        state__in=silence.AT_WORK,
        host=settings.INTRASKILL_HOST_NAME,
    )
    for attempt in mine.select_related("stage__round__experiment"):
        if _has_watcher(attempt) or _adoption_waits(attempt):
            continue
        if _process_lives(attempt) or _left_word(attempt) or attempt.state == State.STARTING:
            _adopt_anew(attempt)
            continue
        stopped = attempt.state == State.STOPPING
        reason = "the process and its watcher vanished"
        if move(attempt, State.LOST, error=reason, message=reason):
            audit.record(
                "attempt.lost",
                experiment=attempt.stage.round.experiment.name,
                subject=str(attempt),
                while_stopping=stopped,
            )


def _adopt_anew(attempt: Attempt) -> None:
    """Hand the attempt in again, unless it moved meanwhile: one that is over takes no GPUs."""
    with transaction.atomic():
        row = Attempt.objects.select_for_update().get(pk=attempt.pk)
        if row.state in silence.AT_WORK and row.job_id == attempt.job_id:
            flow.hand_in(row)


def _has_watcher(attempt: Attempt) -> bool:
    return process.is_same(attempt.watcher_pid, attempt.watcher_started)


def _adoption_waits(attempt: Attempt) -> bool:
    """Whether a job that will adopt the attempt is in the queue, or was taken a moment ago."""
    if not _settled(attempt):
        return True
    try:
        return queue.is_waiting(attempt.job_id)
    except RedisError:
        return True  # nothing can be handed in now; the process goes on and the row is true


def _settled(attempt: Attempt) -> bool:
    """Whether the row's last change is no longer under way, also when the clock was set since."""
    return abs(timezone.now() - attempt.updated_at) >= timedelta(seconds=SETTLE_S)


def _process_lives(attempt: Attempt) -> bool:
    if not attempt.pid or not attempt.pgid:
        return False
    return process.is_alive(process.ProcessRef(attempt.pid, attempt.pgid, attempt.process_started))


def _left_word(attempt: Attempt) -> bool:
    """Whether the attempt's latest command wrote how it ended."""
    if not attempt.command:
        return False
    return process.exit_of(attempt.log_file.with_suffix(f".{attempt.command}.exit")) is not None


def _resume_interrupted() -> None:
    """Continue stages that were interrupted by no decision of anybody."""
    ended = Stage.objects.filter(
        state__in=(State.LOST, State.FAILED, State.STOPPED),
        round__experiment__state__in=(RoundState.FAILED, RoundState.STOPPED),
    )
    for stage in ended.select_related("round__experiment"):
        attempts = list(stage.attempts.order_by("-number")[: RESUMES_WITHOUT_PROGRESS + 1])
        if not may_resume(stage, attempts) or not silence.may_go_on(attempts[0]):
            continue
        try:
            with transaction.atomic():
                attempt = flow.request(stage)
                audit.record(
                    "stage.resume",
                    experiment=stage.round.experiment.name,
                    subject=str(attempt),
                    after=attempts[0].state,
                )
        except IntegrityError:
            continue  # somebody else was faster


def may_resume(stage: Stage, latest_first: list[Attempt]) -> bool:
    """Whether the stage may go on by itself after these attempts (the latest first)."""
    if stage.round.experiment.pause_after_stage or not latest_first:
        return False
    if not _interrupted(latest_first[0]):
        return False
    fruitless = 0
    for attempt in latest_first:
        if not _interrupted(attempt) or attempt.done_at_start < stage.done:
            break
        fruitless += attempt.stop_reason != SHUTDOWN
    return fruitless < RESUMES_WITHOUT_PROGRESS


def _interrupted(attempt: Attempt) -> bool:
    if attempt.state == State.LOST:
        return attempt.stop_reason != "operator"
    if attempt.state == State.STOPPED:
        return attempt.stop_reason == SHUTDOWN
    return attempt.state == State.FAILED and bool(attempt.signal)


def _advance_idle() -> None:
    """Start what comes next where a stage succeeded and nothing was begun after it.

    Where nothing follows it is not running: a pause that came in the moment in which a stage ended
    saw the stage at work, and the stage no pause.
    """
    running = Experiment.objects.filter(state=RoundState.RUNNING)
    for experiment in running.exclude(rounds__stages__attempts__state__in=ACTIVE):
        try:
            with transaction.atomic():
                last = experiment.rounds.last()
                if flow.advance(experiment) is None and last is not None:
                    refresh_round(last)
        except IntegrityError:
            continue  # somebody else was faster
