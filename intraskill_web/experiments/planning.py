"""How far an experiment goes by itself, and where it runs.

As in ``services`` every refusal is an InputError with its reason, and every change is audited.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction

from intraskill_web.core import audit
from intraskill_web.experiments.flow import active_attempt, advance
from intraskill_web.experiments.models import Experiment, Round, Stage
from intraskill_web.experiments.moves import refresh_experiment, refresh_round
from intraskill_web.experiments.services import refuse_imported, round_follows
from intraskill_web.monitoring.preflight.run import require_ready
from jobs.models import Host
from jobs.transitions import RoundState, State
from trainer.errors import InputError
from trainer.experiment_config import MOST_ROUNDS

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

LONGEST_REASON = 300


def pause_after_stage(
    experiment: Experiment, pause: bool, *, actor: AbstractBaseUser | None = None
) -> None:
    """Finish the running stage and start no other; or take that back."""
    refuse_imported(experiment)
    with transaction.atomic():
        experiment.pause_after_stage = pause
        experiment.save(update_fields=["pause_after_stage", "updated_at"])
        last = experiment.rounds.order_by("-number").first()
        if last is not None:
            refresh_round(last)
        audit.record(
            "experiment.pause" if pause else "experiment.unpause",
            actor=actor,
            experiment=experiment.name,
        )


def set_rounds_planned(
    experiment: Experiment,
    rounds: int,
    *,
    reason: str = "",
    actor: AbstractBaseUser | None = None,
) -> None:
    """Plan more rounds, or fewer, but not fewer than have begun.

    Raises InputError too where that plays the test split again and no reason is given.
    """
    refuse_imported(experiment)
    if rounds > MOST_ROUNDS:
        raise InputError(
            f"at most {MOST_ROUNDS}", field="rounds", value=rounds, remedy="Plan fewer"
        )
    why = _reason(experiment, rounds, reason)
    begun = experiment.rounds.count()
    if rounds < max(1, begun):
        raise InputError(
            f"{begun} rounds have begun",
            field="rounds",
            value=rounds,
            remedy=f"Plan at least {max(1, begun)} in all",
        )
    with transaction.atomic():
        experiment.rounds_planned = rounds
        experiment.save(update_fields=["rounds_planned", "updated_at"])
        audit.record(
            "experiment.rounds", actor=actor, experiment=experiment.name, rounds=rounds, **why
        )


def has_played_test(experiment: Experiment, last: Round | None, stages: Iterable[Stage]) -> bool:
    """Whether all planned rounds are done and the last, of these stages, played the test split."""
    if last is None or last.state != RoundState.SUCCEEDED:
        return False
    over = last.number + 1 >= experiment.rounds_planned
    return over and any(s.kind == "select" and s.state == State.SUCCEEDED for s in stages)


def _reason(experiment: Experiment, rounds: int, reason: str) -> dict[str, str]:
    """What goes on record of the reason. Raises InputError where one is needed and missing."""
    reason = " ".join(reason.split())[:LONGEST_REASON]
    if reason:
        return {"reason": reason}
    last = experiment.rounds.order_by("-number").first()
    more = last is not None and rounds > last.number + 1
    if last is not None and more and has_played_test(experiment, last, last.stages.all()):
        raise InputError(
            f"round {last.number} has played the test split; more rounds play it again: say why",
            field="reason",
            remedy="Give a reason; it is recorded for good, with who asked",
        )
    return {}


def continue_until(
    experiment: Experiment,
    rounds: int,
    *,
    reason: str = "",
    actor: AbstractBaseUser | None = None,
) -> None:
    """Go on by itself until ``rounds`` rounds are done; where nothing runs the next begins now.

    Raises InputError as ``set_rounds_planned``, and when that round's preflight is red.
    """
    _reason(experiment, rounds, reason)  # before seconds of looking
    if round_follows(experiment, rounds) and not experiment.pause_after_stage:
        require_ready(experiment, planned=rounds)
    try:
        with transaction.atomic():
            set_rounds_planned(experiment, rounds, reason=reason, actor=actor)
            _go_on_by_itself(experiment, True, actor)
    except IntegrityError as error:
        raise InputError("this round was started a moment ago", field="round") from error


def pin_host(experiment: Experiment, host: str, *, actor: AbstractBaseUser | None = None) -> None:
    """Run on this host only, from the next stage on; empty: on any. Raises InputError."""
    known = sorted(Host.objects.values_list("name", flat=True))
    if host and host not in known:
        raise InputError(
            "no worker of this host ever registered",
            field="host",
            value=host,
            remedy=f"Known: {', '.join(known) or 'none yet'}",
        )
    with transaction.atomic():
        Experiment.objects.filter(pk=experiment.pk).update(host=host)
        audit.record("experiment.host", actor=actor, experiment=experiment.name, host=host)


def hold_after_round(experiment: Experiment, *, actor: AbstractBaseUser | None = None) -> None:
    """Finish the running round and wait there for somebody to start the next."""
    refuse_imported(experiment)
    with transaction.atomic():
        _go_on_by_itself(experiment, False, actor)


def _go_on_by_itself(experiment: Experiment, auto: bool, actor: AbstractBaseUser | None) -> None:
    experiment.auto_continue, experiment.hold_reason = auto, ""
    experiment.save(update_fields=["auto_continue", "hold_reason", "updated_at"])
    refresh_experiment(experiment)
    audit.record(
        "experiment.continue" if auto else "experiment.hold",
        actor=actor,
        experiment=experiment.name,
        rounds=experiment.rounds_planned,
    )
    if auto and experiment.state == RoundState.RUNNING and active_attempt(experiment) is None:
        advance(experiment, into_next_round=True)
