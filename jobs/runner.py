"""What a worker does with one attempt: check, run the stage's commands, publish, go on.

Entered again for the same attempt after its worker died, it adopts the process that still runs, or
reads how it ended, and continues with the next command. Commands themselves continue where their
files end, so entering again never changes a result.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from django.utils import timezone

from intraskill_web.experiments.flow import OPERATOR, advance, pause
from intraskill_web.experiments.models import Attempt, Stage
from intraskill_web.experiments.moves import move
from jobs import documents, endings, environment, fence, mirror, next_round, process
from jobs.invoke import exit_file, invocation, results_file
from jobs.layout import Command, RoundPlan, write_config
from jobs.pipeline import PIPELINE, StageSpec, missing
from jobs.plans import plan_of
from jobs.superseded import set_aside
from jobs.transitions import TERMINAL, State
from jobs.watch import Superseded, Watch, adopt
from trainer.errors import InputError
from trainer.files import write_json

UNKNOWN_SIGNAL = "unknown"
MOST_EXECUTIONS = 50


def run_attempt(attempt_id: int, job_id: str) -> str:
    """The job's function. Returns the state in which it left the attempt, or ``superseded``."""
    connection.close()  # a forked work-horse must not share its parent's connection
    attempt = Attempt.objects.select_related("stage__round__experiment").get(pk=attempt_id)
    pid, host = os.getpid(), settings.INTRASKILL_HOST_NAME
    claimed = adopt(attempt, job_id, worker=f"{host}.{os.getppid()}", pid=pid, host=host)
    if not claimed or attempt.state in TERMINAL:
        return "superseded"
    attempt.refresh_from_db()
    try:
        _Run.of(attempt, job_id).go()
        next_round.begin(attempt.stage.round.experiment)
    except Superseded:
        return "superseded"
    except (OperationalError, InterfaceError):
        # nothing can be written now, and the process works on: the reconciler gives the attempt a
        # new watcher, unless that was in vain too often
        if attempt.executions < MOST_EXECUTIONS:
            raise
        _fail(attempt, job_id)
        raise
    except Exception:
        _fail(attempt, job_id)
        raise
    return str(attempt.state)


def _fail(attempt: Attempt, job_id: str) -> None:
    error = traceback.format_exc()
    line = error.strip().rsplit("\n", 1)[-1]
    move(attempt, State.FAILED, job_id=job_id, error=error, message=line)


class _NotRegistered(Exception):
    """The attempt may not start anything any more."""


@dataclass(frozen=True)
class _Run:
    attempt: Attempt
    job_id: str
    stage: Stage
    plan: RoundPlan
    spec: StageSpec

    @classmethod
    def of(cls, attempt: Attempt, job_id: str) -> _Run:
        stage = attempt.stage
        plan = plan_of(stage.round)
        spec = PIPELINE[stage.kind]
        if attempt.skip_reason:
            plan = spec.without(plan)
        return cls(attempt, job_id, stage, plan, spec)

    @cached_property
    def commands(self) -> Sequence[Command]:
        """First read once files of other settings are set aside: none goes on from those."""
        return self.spec.commands(self.plan)

    @cached_property
    def watch(self) -> Watch:
        mirrored = partial(mirror.follow, self.stage, self.plan)
        return Watch(self.attempt, self.job_id, self.commands, mirrored)

    def go(self) -> None:
        """From wherever the attempt stands to its end, unless another job takes over."""
        fresh = self.attempt.state in (State.REQUESTED, State.QUEUED, State.STARTING)
        if fresh and not self._begin():
            return
        for command in self.commands:
            if self._stopped() or not self._carry_out(command):
                return
        if not self._stopped():
            self._publish()

    def _begin(self) -> bool:
        if self.attempt.state != State.STARTING:
            self._move(State.STARTING, environment=environment.snapshot(), message="checking")
        fence.end_former(self.stage)
        if self.stage.round.config:
            write_json(self.plan.own_config, self.stage.round.config)
        try:
            set_aside(self.stage, self.plan)
        except InputError as error:
            self._move(State.FAILED, error=str(error), message=str(error))
            return False
        self.spec.prepare(self.plan)
        absent = missing(self.spec.needs(self.plan))
        if absent:
            names = ", ".join(str(path.relative_to(self.plan.run)) for path in absent)
            self._move(State.FAILED, error=f"missing: {names}", message=f"missing: {names}")
            return False
        for part in (part for command in self.commands for part in command.parts):
            write_config(self.plan.config_file(self.stage.kind, part.key), part.config)
        return True

    def _carry_out(self, command: Command) -> bool:
        """Run, adopt or skip one command; False when the attempt ended with it."""
        ends = exit_file(self.attempt, command)
        ended = process.exit_of(ends)
        if ended is None:
            ref = self._running(command) or self._start(command, ends)
            if ref is None:
                return False
            ended = self.watch.follow(ref, ends)
        if ended is not None and ended.code == 0:
            return True
        self._end_badly(command, ended)
        return False

    def _running(self, command: Command) -> process.ProcessRef | None:
        row = self.attempt
        if row.command != command.key or not row.pid or not row.pgid:
            return None
        return process.ProcessRef(row.pid, row.pgid, row.process_started)

    def _start(self, command: Command, ends: Path) -> process.ProcessRef | None:
        """Start a command; None when a stop came first, which then ended the attempt."""
        call = invocation(self.attempt, self.plan, command)
        try:
            return process.start(
                call.argv,
                cwd=settings.BASE_DIR,
                log=self.attempt.log_file,
                exit_file=ends,
                results=call.results,
                env=call.env,
                register=lambda ref: self._register(command, ref, call.digest),
            )
        except _NotRegistered:
            if self._stopped():
                return None
            raise Superseded(self.job_id) from None

    def _register(self, command: Command, ref: process.ProcessRef, digest: str) -> None:
        """Put a started group on record, unless the attempt was stopped or taken over."""
        rows = Attempt.objects.filter(
            pk=self.attempt.pk, job_id=self.job_id, state__in=(State.STARTING, State.RUNNING)
        )
        if not rows.update(
            command=command.key,
            pid=ref.pid,
            pgid=ref.pgid,
            process_started=ref.started,
            config_sha256=digest,
            updated_at=timezone.now(),
        ):
            raise _NotRegistered
        if self.attempt.state == State.STARTING:
            self._move(State.RUNNING, message="")

    def _stopped(self) -> bool:
        """Whether a stop was asked for between two commands; then the attempt is over."""
        self.attempt.refresh_from_db()
        if self.attempt.state != State.STOPPING:
            return self.attempt.state in TERMINAL
        self._move(State.STOPPED, message="stopped; resume to continue")
        return True

    def _end_badly(self, command: Command, ended: process.Exit | None) -> None:
        self.attempt.refresh_from_db()
        fields: dict[str, Any] = {"signal": UNKNOWN_SIGNAL}
        if ended is not None:
            fields = {
                "exit_code": ended.code,
                "signal": ended.signal or ("SIGTERM" if ended.code == endings.EXIT_STOPPED else ""),
                "peak_memory_bytes": ended.peak_memory_bytes,
            }
        if self.attempt.state == State.STOPPING:
            self._move(State.STOPPED, message="stopped; resume to continue", **fields)
            return
        last = endings.last_line(self.attempt.log_file)
        if ended is not None and ended.code == endings.EXIT_INCOMPLETE:
            last = endings.completed(results_file(self.attempt, command)) or last
            self._move(State.INCOMPLETE, error=last, message=last, **fields)
            return
        reason = endings.reason(command, ended, last)
        self._move(State.FAILED, error=reason, message=reason, **fields)

    def _publish(self) -> None:
        if self.attempt.state == State.STARTING:  # a stage without commands only publishes
            self._move(State.RUNNING, message="")
        absent = missing(self.spec.yields(self.plan))
        if absent:
            names = ", ".join(str(path.relative_to(self.plan.run)) for path in absent)
            self._move(State.INCOMPLETE, error=f"not made: {names}", message=f"not made: {names}")
            return
        mirror.follow(self.stage, self.plan)
        ends = [exit_file(self.attempt, command) for command in self.commands]
        last = process.exit_of(ends[-1]) if ends else None
        made = documents.of_stage(self.stage.round, self.plan, self.stage.kind)
        with transaction.atomic():
            outcome = self.spec.publish(self.stage, self.plan)
            documents.save(made)
            reason = self.attempt.skip_reason
            if reason:
                outcome |= {"skipped": reason}
            Stage.objects.filter(pk=self.stage.pk).update(outcome=outcome)
            self._move(
                State.SKIPPED if reason else State.SUCCEEDED,
                message=reason,
                exit_code=0,
                peak_memory_bytes=last.peak_memory_bytes if last else None,
            )
            if self.attempt.stop_reason == OPERATOR:  # the work was faster than the stop
                pause(self.stage.round)
            advance(self.stage.round.experiment)

    def _move(self, target: State, **fields: Any) -> None:
        """Move the attempt as its watcher. A stop that came first turns the move aside."""
        if move(self.attempt, target, job_id=self.job_id, **fields):
            return
        self.attempt.refresh_from_db()
        if self.attempt.state != State.STOPPING or self.attempt.job_id != self.job_id:
            raise Superseded(self.job_id)
