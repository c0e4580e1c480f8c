"""Going on otherwise than planned: a stage tried again with other settings, a stage left out, a
next round that differs from the last.

As in ``services`` every refusal is an InputError with its reason, and every action leaves its mark
in the audit trail and in the attempt or round that it makes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from intraskill_web.core import audit
from intraskill_web.experiments import services
from intraskill_web.experiments.config_changes import (
    Changes,
    affects,
    differences,
    merged,
    refuse,
)
from intraskill_web.experiments.flow import active_attempt, hand_in
from intraskill_web.experiments.models import Attempt, Experiment, Round, Stage
from intraskill_web.experiments.moves import new_attempt
from intraskill_web.monitoring.preflight.inputs import next_round, settings_of
from intraskill_web.monitoring.preflight.run import require_ready
from jobs.launchers.ray_left import LeftJob, left_job, state_file
from jobs.transitions import DONE, RESUMABLE
from trainer.errors import InputError

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

# why a stage cannot be left out; those not named can
NEEDED = {
    "freeze": "the round has no curriculum without it",
    "train": "the round has no checkpoint without it",
    "validate": "the gate compares with it",
}


def retry_with_changes(
    stage: Stage,
    values: dict[str, Any],
    *,
    stop_job: str = "",
    actor: AbstractBaseUser | None = None,
) -> Attempt:
    """A new attempt at a stage that ended without success, with ``values`` over its settings.

    What its former attempts made is set aside when the stage reads a changed value. The changes
    stand in the attempt and hold for the rest of the round and for the rounds after it. A Ray job
    that a former attempt left is ended before that, and is confirmed by its name: ``stop_job``.
    """
    try:
        with transaction.atomic():
            stage = _to_rework(stage)
            if stage.state not in RESUMABLE:
                raise InputError(
                    f"a stage that is {stage.state or 'not begun'} cannot be tried again",
                    field="stage",
                    value=stage.kind,
                    remedy="Change the next round instead",
                )
            changes = _apply(stage.round, values, stage=stage.kind)
            left = job_in_the_way(stage, changes)
            if left is not None and left.name != stop_job:
                raise InputError(
                    _("job %(job)s of an attempt before may still run") % {"job": left.name},
                    field="stop_job",
                    value=stop_job,
                    remedy=_("Confirm that it is stopped first, by its name"),
                )
            attempt = _begin(stage, changes=changes)
            facts = {} if left is None else {"stop_job": left.name}
            _note("stage.retry", actor, attempt, changes=changes, **facts)
    except IntegrityError as error:
        raise InputError("this stage was tried again a moment ago", field="stage") from error
    return attempt


def job_in_the_way(stage: Stage, changes: Changes) -> LeftJob | None:
    """The Ray job that a former attempt left and that would write among what these changes make.

    Without changes that the stage reads, the next attempt goes on with that job.
    """
    if not affects(changes, stage.round.settings, stage.kind):
        return None
    return left_job(state_file(stage.round.folder, stage.kind))


def why_not_skipped(stage: Stage) -> str:
    """Why the stage cannot be left out; empty when it can."""
    if stage.kind in NEEDED:
        return NEEDED[stage.kind]
    last = stage.round.number + 1 == stage.round.experiment.rounds_planned
    if stage.kind == "select" and not last:
        return "it only takes over what the gate selected"
    return ""


def skip_stage(stage: Stage, reason: str, *, actor: AbstractBaseUser | None = None) -> Attempt:
    """Go on without a stage: no candidates, the bank as it was, or no test.

    Raises InputError where the round needs the stage, or no reason is given.
    """
    reason = " ".join(reason.split())
    if not reason:
        raise InputError("say why", field="reason", remedy="It stands beside the stage for ever")
    try:
        with transaction.atomic():
            stage = _to_rework(stage)
            if stage.state in DONE:
                raise InputError("this stage is done", field="stage", value=stage.kind)
            if why := why_not_skipped(stage):
                raise InputError(f"cannot be left out: {why}", field="stage", value=stage.kind)
            attempt = _begin(stage, skip_reason=reason[:300])
            _note("stage.skip", actor, attempt, reason=attempt.skip_reason)
    except IntegrityError as error:
        raise InputError("this stage was begun a moment ago", field="stage") from error
    return attempt


def start_changed_round(
    experiment: Experiment, values: dict[str, Any], *, actor: AbstractBaseUser | None = None
) -> Round:
    """The next round as a clone of the last with ``values`` over its settings."""
    changes = change_of_next(experiment, values)
    services.following_round(experiment, None)
    require_ready(experiment, config=_of_next(experiment, values) if changes else None)
    with transaction.atomic():
        round_ = services.start_round(experiment, actor=actor, is_ready=True)
        changes = _apply(round_, values, stage="freeze")
        attempt = Attempt.objects.get(stage__round=round_, number=1)
        Attempt.objects.filter(pk=attempt.pk).update(changes=changes)
        _note("round.change", actor, attempt, changes=changes)
    return round_


def change_of_next(experiment: Experiment, values: dict[str, Any]) -> Changes:
    """What the next round would do otherwise than the last. Raises InputError as starting would."""
    before = settings_of(experiment, next_round(experiment))
    changes = differences(before, _of_next(experiment, values))
    refuse(changes, before, stage="freeze")
    return changes


def _of_next(experiment: Experiment, values: dict[str, Any]) -> dict[str, Any]:
    return merged(settings_of(experiment, next_round(experiment)), values)


def change_of_rest(stage: Stage, values: dict[str, Any]) -> Changes:
    """What the rest of the round would do otherwise. Raises InputError as a retry would."""
    before = stage.round.settings
    changes = differences(before, merged(before, values))
    refuse(changes, before, stage=stage.kind)
    return changes


def superseded_by(stage: Stage) -> Attempt | None:
    """The latest attempt whose changed settings made the stage's former files worthless."""
    for attempt in stage.attempts.exclude(changes={}).filter(number__gt=1).order_by("-number"):
        if affects(attempt.changes, stage.round.settings, stage.kind):
            return attempt
    return None


def _to_rework(stage: Stage) -> Stage:
    stage = Stage.objects.select_related("round__experiment").get(pk=stage.pk)
    experiment = stage.round.experiment
    services.refuse_imported(experiment)
    if (busy := active_attempt(experiment)) is not None:
        raise InputError(
            f"{busy.stage.kind} is {busy.state}", field="stage", value=stage.kind,
            remedy="Stop it first",
        )  # fmt: skip
    following = stage.round.stages.exclude(state__in=DONE).order_by("position").first()
    newest = experiment.rounds.order_by("-number").first()
    if newest != stage.round or (following is not None and following != stage):
        due = following.kind if following is not None else "none"
        raise InputError(
            f"it is not this stage's turn (the next one is {due})",
            field="stage",
            value=stage.kind,
        )
    return stage


def _apply(round_: Round, values: dict[str, Any], *, stage: str) -> Changes:
    before = round_.settings
    after = merged(before, values)
    changes = differences(before, after)
    refuse(changes, before, stage=stage)
    if changes:
        round_.config = after
        round_.save(update_fields=["config", "updated_at"])
    return changes


def _begin(stage: Stage, **fields: Any) -> Attempt:
    experiment = stage.round.experiment
    Experiment.objects.filter(pk=experiment.pk).update(pause_after_stage=False)
    attempt = new_attempt(stage)
    for name, value in fields.items():
        setattr(attempt, name, value)
    attempt.save(update_fields=list(fields))
    hand_in(attempt)
    return attempt


def _note(action: str, actor: AbstractBaseUser | None, attempt: Attempt, **facts: Any) -> None:
    name = attempt.stage.round.experiment.name
    audit.record(action, actor=actor, experiment=name, subject=str(attempt), **facts)
