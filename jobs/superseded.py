"""Setting aside what a stage made before its settings were changed.

A stage continues where its files end, which is right only while its settings stay. When an attempt
changed what the stage reads, everything its former attempts wrote moves to
``round-NNN/superseded/<stage>-before-attempt-<n>/`` and its rows go. Files move one by one by
rename, the mark comes last: whoever is killed in between goes on from there.
"""

from __future__ import annotations

from pathlib import Path

from django.db import transaction
from django.db.models import Q

from intraskill_web.episodes.models import Episode, IngestedFile
from intraskill_web.episodes.publish import forget
from intraskill_web.experiments.models import Document, Stage
from intraskill_web.experiments.rework import superseded_by
from intraskill_web.monitoring.models import MetricPoint, UpdatePoint
from jobs.layout import RoundPlan
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


def set_aside(stage: Stage, plan: RoundPlan) -> None:
    """Once for the latest attempt that changed what the stage reads; else nothing happens."""
    attempt = superseded_by(stage)
    if attempt is None:
        return
    target = plan.folder / "superseded" / f"{stage.kind}-before-attempt-{attempt.number}"
    if (target / MARK).exists():
        return
    target.mkdir(parents=True, exist_ok=True)
    for name in MADE[stage.kind]:
        if (plan.folder / name).exists():
            (plan.folder / name).rename(target / name)
        _forget(stage, plan, plan.folder / name)
    write_text(target / MARK, "")


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
