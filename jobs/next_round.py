"""Rounds that begin by themselves: only once their preflight is green, else they are held.

A look at what the next round reads takes seconds, so it is never done inside a transaction. A held
experiment says why, in words that follow what is red now, and goes on by itself as soon as the same
look finds nothing red any more.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial

from django.conf import settings
from django.db import IntegrityError, InterfaceError, OperationalError, transaction
from django.utils import timezone

from intraskill_web.core import audit
from intraskill_web.experiments import flow
from intraskill_web.experiments.models import Experiment, Round
from intraskill_web.experiments.moves import refresh_experiment
from intraskill_web.monitoring.preflight import inputs
from intraskill_web.monitoring.preflight import run as preflight
from jobs.transitions import RoundState
from trainer.errors import InputError

logger = logging.getLogger(__name__)
# The worker that ended the last round looks first; only if it died in between others do.
LEFT_TO_THE_WORKER = timedelta(seconds=20)
# The trainer's checks of a held round are done again so often: a cure may leave no trace in a file.
LOOK_AGAIN_S = 120.0


def begin(experiment: Experiment) -> bool:
    """Begin the round that is due; False where none is, or where it was held instead.

    Whatever goes wrong with this experiment holds it with that as its reason, so that others go on.
    """
    try:
        reason = _look_and_begin(experiment)
        if reason:
            _hold(experiment, reason)
    except Experiment.DoesNotExist:
        return False  # withdrawn meanwhile
    return reason == ""


def _look_and_begin(experiment: Experiment) -> str | None:
    """Why the round that is due cannot begin; empty when it began, None where there is none."""
    if not is_due(experiment):
        return None
    try:
        preflight.require_ready(experiment, trust_s=LOOK_AGAIN_S)
        with transaction.atomic():
            begun = is_due(experiment) and flow.advance(experiment, into_next_round=True)
            return "" if begun else None
    except IntegrityError:
        return None  # somebody else was faster
    except (Experiment.DoesNotExist, OperationalError, InterfaceError):
        raise  # it is gone, or the database is
    except InputError as error:
        return str(error)
    except Exception as error:
        logger.exception("the next round of %s", experiment.name)
        return f"the round could not begin: {type(error).__name__}: {error}"


def begin_left_over() -> None:
    """For every experiment whose next round is due or held: look again, beside this process.

    Of those with equal inputs one is looked at, and the others read its report.
    """
    waits = Experiment.objects.filter(auto_continue=True, pause_after_stage=False)
    unfinished = Round.objects.exclude(state=RoundState.SUCCEEDED)
    waits = waits.exclude(rounds__in=unfinished)  # else every experiment that works is asked
    doubtful: dict[str, list[Experiment]] = {}  # by what is to be looked at
    waits = waits.filter(state=RoundState.RUNNING) | waits.exclude(hold_reason="")
    for experiment in waits.order_by("pk"):
        if not experiment.hold_reason and _young(experiment):
            continue
        with suppress(Experiment.DoesNotExist):  # withdrawn meanwhile
            if not is_due(experiment):
                continue
            if _costs_nothing(experiment):
                begin(experiment)
            else:
                key = inputs.key_of(experiment, inputs.next_round(experiment))
                doubtful.setdefault(key, []).append(experiment)
    for key, alike in doubtful.items():
        preflight.kick(f"inputs {key}", partial(_begin_each, alike))


def _begin_each(experiments: Sequence[Experiment]) -> None:
    """One after the other: what the first look finds, the others read."""
    for experiment in experiments:
        begin(experiment)


def is_due(experiment: Experiment) -> bool:
    """Whether the last round is done and the next shall begin by itself.

    The first does so only in a sweep: who made a single experiment starts it.
    """
    experiment.refresh_from_db()
    if not experiment.auto_continue or experiment.pause_after_stage or experiment.imported:
        return False
    last = experiment.rounds.order_by("-number").first()
    if last is None:
        return experiment.sweep_id is not None
    return last.state == RoundState.SUCCEEDED and last.number + 1 < experiment.rounds_planned


def _young(experiment: Experiment) -> bool:
    return abs(timezone.now() - experiment.updated_at) < LEFT_TO_THE_WORKER


def _costs_nothing(experiment: Experiment) -> bool:
    if not settings.INTRASKILL_PREFLIGHT:
        return True
    report = preflight.known(experiment, inputs.next_round(experiment))
    return report is not None and not preflight.is_doubtful(report, LOOK_AGAIN_S)


def _hold(experiment: Experiment, reason: str) -> None:
    """Stop before the next round. The onset is noted once; the reason is that of now."""
    with transaction.atomic():
        if not is_due(experiment):
            return  # begun, paused or left to people while somebody looked
        was_held = bool(experiment.hold_reason)
        other = Experiment.objects.filter(pk=experiment.pk).exclude(hold_reason=reason)
        if not other.update(hold_reason=reason, updated_at=timezone.now()) or was_held:
            return
        refresh_experiment(experiment)
        audit.record(
            "round.hold",
            experiment=experiment.name,
            subject=f"round {inputs.next_round(experiment)}",
            reason=reason,
        )
