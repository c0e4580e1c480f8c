"""What people may do with an experiment.

Every action checks the rules, writes the audit trail and hands work to the queue after its
transaction; pages, commands and the JSON API all come through here.

Refusals are InputErrors: they say what is wrong and what to do.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction

from intraskill_web.configs.models import ConfigRevision
from intraskill_web.configs.uses import record_uses
from intraskill_web.core import audit
from intraskill_web.experiments.flow import (
    OPERATOR,
    active_attempt,
    advance,
    new_round,
    request,
    stop_attempt,
)
from intraskill_web.experiments.models import Attempt, Experiment, Round, Stage
from intraskill_web.experiments.moves import refresh_experiment, refresh_round
from intraskill_web.experiments.states import STAGE_ORDER
from intraskill_web.monitoring.preflight.run import require_ready
from jobs.models import Host
from jobs.transitions import RESUMABLE, RoundState
from trainer.canonical import fingerprint
from trainer.config import ExperimentConfig
from trainer.errors import InputError
from trainer.files import write_json

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


def create_experiment(
    config: ExperimentConfig,
    *,
    actor: AbstractBaseUser | None = None,
    revisions: Mapping[str, ConfigRevision] | None = None,
) -> Experiment:
    """Freeze ``config`` into a run folder, with copies of the first bank and checkpoint.

    ``revisions`` are those it was made from, by kind; the others are recorded by content.

    Raises InputError when the name is taken or a file is missing.
    """
    for path in (config.start.skillbank, config.start.checkpoint):
        if not path.exists():
            raise InputError(
                "no such file",
                file=path,
                field="start",
                remedy="Name a file that exists; paths are taken from the configuration's folder",
            )
    with transaction.atomic():
        if Experiment.objects.filter(name=config.name).exists():
            raise InputError(
                "an experiment of this name exists",
                field="name",
                value=config.name,
                remedy="Choose another name, or resume that experiment",
            )
        experiment = Experiment(
            name=config.name,
            engine=config.engine,
            seed=config.seed,
            rounds_planned=config.rounds,
            owner_id=actor.pk if actor else None,
        )
        frozen = _freeze(config, experiment.folder)
        experiment.config = frozen.model_dump(mode="json")
        experiment.config_sha256 = fingerprint(experiment.config)
        experiment.save()
        record_uses(experiment, revisions)
        audit.record(
            "experiment.create",
            actor=actor,
            experiment=experiment.name,
            config_sha256=experiment.config_sha256,
        )
    return experiment


def _freeze(config: ExperimentConfig, folder: Path) -> ExperimentConfig:
    if folder.exists() and any(folder.iterdir()):
        raise InputError(
            "the run folder is not empty",
            file=folder,
            remedy="Import it with import_run, or choose another name",
        )
    start = folder / "start"
    start.mkdir(parents=True)
    shutil.copyfile(config.start.skillbank, start / "skillbank.json")
    shutil.copytree(config.start.checkpoint, start / "checkpoint")
    relative = config.start.model_copy(
        update={"skillbank": Path("start/skillbank.json"), "checkpoint": Path("start/checkpoint")}
    )
    frozen = config.model_copy(update={"start": relative})
    write_json(folder / "experiment.json", frozen.model_dump(mode="json"))
    return frozen


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
    _following(experiment, number)
    if not is_ready:
        require_ready(experiment)  # takes seconds where the inputs were not looked at yet
    try:
        with transaction.atomic():
            following = _following(experiment, number)
            round_ = new_round(experiment, following)
            _unpause(experiment)
            audit.record(
                "round.start", actor=actor, experiment=experiment.name, subject=f"round {following}"
            )
            request(round_.stages.get(kind=STAGE_ORDER[0]))
    except IntegrityError as error:
        raise InputError("this round was started a moment ago", field="round") from error
    return round_


def _following(experiment: Experiment, number: int | None) -> int:
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
        raise InputError(
            f"the next round is {following}", field="round", value=number,
            remedy="Rounds run in order; resume an earlier one with round_resume",
        )  # fmt: skip
    if last is not None and last.state != RoundState.SUCCEEDED:
        raise InputError(
            f"round {last.number} is {last.state}", field="round", value=following,
            remedy="Wait for it, or resume it with round_resume",
        )  # fmt: skip
    if following >= experiment.rounds_planned:
        raise InputError(
            f"all {experiment.rounds_planned} planned rounds are finished",
            field="round",
            value=following,
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
    if _round_follows(experiment, experiment.rounds_planned):
        require_ready(experiment)
    try:
        with transaction.atomic():
            refuse_imported(experiment)
            if active_attempt(experiment) is not None:
                raise InputError("the round is already active", field="round")
            _unpause(experiment)
            stage = advance(experiment, into_next_round=True)
            if stage is None:
                raise InputError("nothing is left to do", field="round")
            audit.record(
                "round.resume", actor=actor, experiment=experiment.name, subject=str(stage)
            )
    except IntegrityError as error:
        raise InputError("this round was resumed a moment ago", field="round") from error
    return stage


def retry_stage(stage: Stage, *, actor: AbstractBaseUser | None = None) -> Attempt:
    """A new attempt at a stage that ended without success. Raises InputError otherwise."""
    try:
        with transaction.atomic():
            stage.refresh_from_db()
            refuse_imported(stage.round.experiment)
            if stage.state not in RESUMABLE:
                raise InputError(
                    f"a stage that is {stage.state or 'not begun'} cannot be tried again",
                    field="stage",
                    value=stage.kind,
                )
            attempt = request(stage)
            audit.record(
                "stage.retry", actor=actor, experiment=stage.round.experiment.name,
                subject=str(attempt),
            )  # fmt: skip
    except IntegrityError as error:
        raise InputError("this stage was tried again a moment ago", field="stage") from error
    return attempt


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
    experiment: Experiment, rounds: int, *, actor: AbstractBaseUser | None = None
) -> None:
    """Plan more rounds, or fewer, but not fewer than have begun."""
    refuse_imported(experiment)
    begun = experiment.rounds.count()
    if rounds < max(1, begun):
        raise InputError(f"{begun} rounds have begun", field="rounds", value=rounds)
    with transaction.atomic():
        experiment.rounds_planned = rounds
        experiment.save(update_fields=["rounds_planned", "updated_at"])
        audit.record(
            "experiment.rounds", actor=actor, experiment=experiment.name, rounds=rounds
        )  # fmt: skip


def continue_until(
    experiment: Experiment, rounds: int, *, actor: AbstractBaseUser | None = None
) -> None:
    """Go on by itself until ``rounds`` rounds are done; where nothing runs the next begins now.

    Raises InputError too when that round's preflight is red.
    """
    if _round_follows(experiment, rounds) and not experiment.pause_after_stage:
        require_ready(experiment, planned=rounds)
    try:
        with transaction.atomic():
            set_rounds_planned(experiment, rounds, actor=actor)
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


def _round_follows(experiment: Experiment, planned: int) -> bool:
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
