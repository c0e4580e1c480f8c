"""What people may do with exports: ask for one, ask again. Checks, audit, hand-in on commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from intraskill_web.core import audit
from intraskill_web.core.handed_in import this_host
from intraskill_web.experiments.models import Experiment
from intraskill_web.reports.models import Export
from jobs.queue import enqueue_work_on_commit
from trainer.errors import InputError

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

LANGUAGES = ("en,zh", "en", "zh")


@transaction.atomic
def request_export(
    experiments: Sequence[Experiment],
    *,
    actor: AbstractBaseUser | None,
    languages: str = "en,zh",
    archive: bool = True,
) -> Export:
    """Ask for a report of one experiment, or for a comparison of several.

    Raises InputError for unknown languages, for none, and while an equal export is being made.
    """
    if languages not in LANGUAGES:
        raise InputError(
            "unknown languages", field="languages", value=languages,
            remedy=f"known: {', '.join(LANGUAGES)}",
        )  # fmt: skip
    if not experiments:
        raise InputError("at least one experiment is needed", field="experiments")
    names = [experiment.name for experiment in experiments]
    for other in Export.objects.filter(state__in=("requested", "running"), names=names):
        if not other.silent:
            raise InputError(_("An export of this is being made"), field="experiment")
    export = Export.objects.create(
        experiment=experiments[0] if len(experiments) == 1 else None,
        names=names,
        languages=languages,
        archive=archive,
        owner_id=actor.pk if actor else None,
    )
    audit.record(
        "report.request", actor=actor, experiment=names[0] if len(names) == 1 else "",
        subject=str(export), languages=languages,
    )  # fmt: skip
    enqueue_work_on_commit(Export.JOB, export.pk, f"export-{export.pk}-1")
    return export


@transaction.atomic
def request_again(export: Export, *, actor: AbstractBaseUser | None) -> None:
    """Hand an export in again that failed or lost its worker. Raises InputError otherwise."""
    found = Export.objects.select_for_update().get(pk=export.pk)
    if found.state == "succeeded" or (found.state != "failed" and not found.silent):
        raise InputError(_("This export did not fail"), field="export", value=found.pk)
    found.state, found.error, found.done, found.heartbeat_at = "requested", "", 0, timezone.now()
    found.tries, found.host = 0, this_host()
    found.save()
    audit.record("report.again", actor=actor, subject=str(found))
    stamp = int(timezone.now().timestamp())
    enqueue_work_on_commit(Export.JOB, found.pk, f"export-{found.pk}-{stamp}")
