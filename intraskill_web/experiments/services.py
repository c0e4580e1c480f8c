"""What people may do with the rounds of an experiment: start, stop, resume, try again.

Every action checks the rules, writes the audit trail and hands work to the queue after its
transaction; pages, commands and the JSON API all come through here.

Refusals are InputErrors: they say what is wrong and what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction

from intraskill_web.core import audit
from intraskill_web.core.parameters import ParameterError
from intraskill_web.experiments.flow import (
    OPERATOR,
    active_attempt,
    advance,
    new_round,
    request,
    stop_attempt,
)
from intraskill_web.experiments.models import Experiment, Round, Stage
from intraskill_web.experiments.states import STAGE_ORDER
from intraskill_web.monitoring.preflight.run import require_ready
from jobs.transitions import RoundState
from trainer.errors import InputError

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


def start_round(
    experiment: Experiment,
    number: int | None = None,
    *,
    actor: AbstractBaseUser | None = None,
    is_ready: bool = False,
) -> Round:
    """Begin the next round (or exactly round ``number``). Of two starts at once one is refused.

    Raises InputError too while the preflight has a red item; ``is_ready`` says that it was looked
    at, because that takes seconds and must not be done inside a transaction.
    """
    following_round(experiment, number)
    if not is_ready:
        require_ready(experiment)  # takes seconds where the inputs were not looked at yet
    try:
        with transaction.atomic():
            following = following_round(experiment, number)
            round_ = new_round(experiment, following)
            _unpause(experiment)
            audit.record(
                "round.start", actor=actor, experiment=experiment.name, subject=f"round {following}"
            )
            request(round_.stages.get(kind=STAGE_ORDER[0]))
    except IntegrityError as error:
        raise InputError("this round was started a moment ago", field="round") from error
    except Experiment.DoesNotExist as error:
        raise InputError("the experiment was withdrawn a moment ago", field="round") from error
    return round_


def following_round(experiment: Experiment, number: int | None) -> int:
    """The number of the round that may start now. Raises InputError when none may."""
    refuse_imported(experiment)
    last = experiment.rounds.order_by("-number").first()
    following = 0 if last is None else last.number + 1
    _refuse_start(experiment, last, following, number)
    return following


def _refuse_start(
    experiment: Experiment, last: Round | None, following: int, number: int | None
) -> None:
    if number is not None and number != following:
        raise ParameterError(
            f"the next round is {following}", field="round", value=number,
            remedy="Rounds run in order; resume an earlier one with round_resume",
        )  # fmt: skip
    if last is not None and last.state != RoundState.SUCCEEDED:
        active = last.state in (RoundState.RUNNING, RoundState.STOPPING)
        raise InputError(
            f"round {last.number} is {last.state}", field="round", value=number,
            remedy="Wait for it, or stop it with round_stop" if active
            else "Go on with it by round_resume",
        )  # fmt: skip
    if following >= experiment.rounds_planned:
        raise InputError(
            "the planned round is finished"
            if experiment.rounds_planned == 1
            else f"all {experiment.rounds_planned} planned rounds are finished",
            field="round",
            value=number,
            remedy=f"Plan more with round_extend {experiment.name} {following + 1}, "
            "or on the page of the experiment",
        )


def stop_round(
    experiment: Experiment, *, actor: AbstractBaseUser | None = None, reason: str = OPERATOR
) -> bool:
    """Ask the active attempt to stop; False if nothing was active. It can be resumed later."""
    with transaction.atomic():
        attempt = active_attempt(experiment)
        if attempt is None:
            return False
        if not stop_attempt(attempt, reason):
            return False
        audit.record("round.stop", actor=actor, experiment=experiment.name, subject=str(attempt))
    return True


def resume_round(experiment: Experiment, *, actor: AbstractBaseUser | None = None) -> Stage:
    """Go on where the experiment ended: a new attempt at the stage that did not succeed.

    Where the round is done the next begins, unless its preflight is red. Raises InputError.
    """
    if round_follows(experiment, experiment.rounds_planned):
        require_ready(experiment)
    try:
        with transaction.atomic():
            refuse_imported(experiment)
            if active_attempt(experiment) is not None:
                raise InputError(
                    "the round is already active", field="round",
                    remedy="Wait for it, or stop it with round_stop",
                )  # fmt: skip
            _unpause(experiment)
            stage = advance(experiment, into_next_round=True)
            if stage is None:
                begun = experiment.rounds.count()
                raise InputError(
                    "nothing is left to do", field="round",
                    remedy=f"Plan more with round_extend {experiment.name} {begun + 1}",
                )  # fmt: skip
            begun = stage.kind == STAGE_ORDER[0] and stage.attempts.count() == 1
            action = "round.start" if begun else "round.resume"
            subject = f"round {stage.round.number}" if begun else str(stage)
            audit.record(action, actor=actor, experiment=experiment.name, subject=subject)
    except IntegrityError as error:
        raise InputError("this round was resumed a moment ago", field="round") from error
    return stage


def round_follows(experiment: Experiment, planned: int) -> bool:
    """Whether going on begins a round that is not planned out yet: the last one is done."""
    refuse_imported(experiment)
    last = experiment.rounds.order_by("-number").first()
    done = last is None or last.state == RoundState.SUCCEEDED
    return done and experiment.rounds.count() < planned


def refuse_imported(experiment: Experiment) -> None:
    """Raises InputError for an experiment that only came from files: there is nothing to run."""
    if experiment.imported:
        raise InputError(
            f"this experiment was imported from {_source(experiment)}; it can be read, not run",
            field="experiment",
            value=experiment.name,
            remedy="Start a new experiment from one of its banks",
        )


def _source(experiment: Experiment) -> str:
    return "a run folder" if experiment.imported == "run folder" else "published files"


def _unpause(experiment: Experiment) -> None:
    experiment.pause_after_stage = False
    experiment.save(update_fields=["pause_after_stage", "updated_at"])
