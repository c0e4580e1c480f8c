"""Setting aside what a stage made before its settings were changed.

A stage continues where its files end, which is right only while its settings stay. When an attempt
changed what the stage reads, everything its former attempts wrote moves to
``round-NNN/superseded/<stage>-before-attempt-<n>/`` and its rows go. Files move one by one by
rename, the mark comes last: whoever is killed in between goes on from there.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from intraskill_web.episodes.models import Episode, IngestedFile
from intraskill_web.episodes.publish import forget
from intraskill_web.experiments.models import Attempt, Document, Stage
from intraskill_web.experiments.rework import superseded_by
from intraskill_web.monitoring.models import MetricPoint, UpdatePoint
from jobs import environment
from jobs.launchers.ray_left import left_job, state_file
from jobs.layout import RoundPlan
from trainer.errors import InputError
from trainer.files import write_text

MADE: dict[str, tuple[str, ...]] = {
    "freeze": ("curriculum.json", "baseline"),
    "train": ("train", "analysis"),  # a watch analyses beside the training
    "analyse": ("analysis",),
    "validate": ("validate",),
    "gate": ("gate",),
    "select": ("test",),
}
MARK = "set-aside"
END_JOB = ("-m", "jobs.launchers.ray_job", "end")


def set_aside(stage: Stage, plan: RoundPlan) -> None:
    """Once for the latest attempt that changed what the stage reads; else nothing happens.

    Raises InputError when a job of a former attempt that may still write there cannot be ended.
    """
    attempt = superseded_by(stage)
    if attempt is None:
        return
    target = plan.folder / "superseded" / f"{stage.kind}-before-attempt-{attempt.number}"
    if (target / MARK).exists():
        return
    _end_left_job(state_file(plan.folder, stage.kind), stage.attempts.latest("number"))
    target.mkdir(parents=True, exist_ok=True)
    for name in MADE[stage.kind]:
        if (plan.folder / name).exists():
            (plan.folder / name).rename(target / name)
        _forget(stage, plan, plan.folder / name)
    write_text(target / MARK, "")


def _end_left_job(state: Path, attempt: Attempt) -> None:
    """A job that a killed launcher left would go on to write where nothing lies any more.

    Whoever asked for the attempt was told its name (``rework.retry_with_changes``).
    """
    if left_job(state) is None:
        return
    with attempt.log_file.open("ab") as log:
        ended = subprocess.run(
            [sys.executable, *END_JOB, "--state", str(state)],
            cwd=settings.BASE_DIR, env=environment.for_trainer(), stdin=subprocess.DEVNULL,
            stdout=log, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    if ended.returncode:
        said = ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"]
        raise InputError(
            f"the Ray job of an attempt before could not be ended: {said[-1]}",
            file=state,
            remedy="Try again, or delete this file once the job is gone for ever",
        )


def _forget(stage: Stage, plan: RoundPlan, path: Path) -> None:
    """Delete the rows made of ``path`` and of what lay below it."""
    below = path.relative_to(plan.run).as_posix()
    made = Q(experiment=stage.round.experiment) & (Q(path__startswith=f"{below}/") | Q(path=below))
    with transaction.atomic():
        forget(Episode.objects.filter(made))
        for model in (IngestedFile, Document):
            model.objects.filter(made).delete()
        if stage.kind == "train":
            MetricPoint.objects.filter(round=stage.round).delete()
            UpdatePoint.objects.filter(round=stage.round).delete()
        Stage.objects.filter(pk=stage.pk).update(done=0, total=0)
