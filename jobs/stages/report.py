"""An export as a job: made in the worker, checked at once, its progress in its row.

The folder appears whole or not at all, so a job that died is simply done again.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from django.utils import timezone

from intraskill_web.core import audit
from intraskill_web.experiments.models import Experiment
from intraskill_web.reports.models import Export
from jobs.reports.build import export_report
from jobs.reports.check import check_report
from jobs.reports.compare import export_comparison
from jobs.reports.placing import Exported
from trainer.errors import InputError
from trainer.lock import Held, exclusive


def run_export(pk: int) -> None:
    """Make the export of a row; a row that another job took is left alone."""
    export = Export.objects.get(pk=pk)
    with suppress(Held), exclusive(export.workplace):
        _carry_out(export)


def _carry_out(export: Export) -> None:
    now = timezone.now()
    if not export.own.filter(state="requested").update(
        state="running", heartbeat_at=now, updated_at=now
    ):
        return
    try:
        made = _make(export)
        found = check_report(export.folder)
    except Exception as error:
        _end(export, state="failed", error=str(error)[:2000])
        if not isinstance(error, InputError):
            raise  # a fault of ours: the queue keeps its traceback
        return
    kept = _end(
        export,
        state="succeeded",
        files=made.files,
        bytes=made.bytes,
        manifest_sha256=made.manifest_sha256,
        seconds=made.seconds,
        problems=found["problems"],
        checks=found["checks"],
    )
    if not kept:
        return
    audit.record(
        "report.export",
        actor=export.owner,
        experiment=export.experiment.name if export.experiment else "",
        subject=str(export),
        manifest=made.manifest_sha256,
        problems=len(found["problems"]),
    )


def _make(export: Export) -> Exported:
    experiments = [Experiment.objects.get(name=name) for name in export.names]
    languages, tell = export.languages.split(","), partial(_tell, export)
    if len(experiments) > 1:
        return export_comparison(
            experiments, export.folder, languages=languages, archive=export.archive, force=True,
            tell=tell,
        )  # fmt: skip
    return export_report(
        experiments[0], export.folder, languages=languages, archive=export.archive, force=True,
        tell=tell,
    )  # fmt: skip


def _tell(export: Export, done: int, total: int, message: str) -> None:
    now = timezone.now()
    export.own.update(done=done, total=total, message=message, heartbeat_at=now, updated_at=now)


def _end(export: Export, **values: object) -> bool:
    """Write how it ended; False where another host has it now."""
    now = timezone.now()
    return bool(export.own.update(ended_at=now, updated_at=now, **values))
