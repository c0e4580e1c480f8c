"""What the stages wrote: documents by hash, and scores by checkpoint."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from intraskill_web.experiments.models.runs import Experiment, Round

ARM_CHOICES = [("bare", _("bare")), ("full", _("full skill")), ("masked", _("masked"))]
SPLIT_CHOICES = [("val", _("validation")), ("test", _("test")), ("train", _("training"))]


class Document(models.Model):
    """A frozen file of the run folder; ``verify`` hashes it again."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="documents")
    round = models.ForeignKey(
        Round, on_delete=models.CASCADE, related_name="documents", null=True, blank=True
    )
    kind = models.CharField(max_length=40)  # e.g. curriculum, bank, pool, assignment
    path = models.CharField(max_length=300)  # relative to the experiment's folder
    sha256 = models.CharField(max_length=64)  # of the bytes
    content_sha256 = models.CharField(max_length=64, blank=True)  # of the contents without times
    size = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["experiment", "path"]
        constraints = [
            models.UniqueConstraint(fields=["experiment", "path"], name="document_path_once")
        ]
        verbose_name = _("document")
        verbose_name_plural = _("documents")

    def __str__(self) -> str:
        return self.path


class CheckpointScore(models.Model):
    """How one checkpoint did on one split in one arm. ``step`` 0 is the starting checkpoint."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="scores")
    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="scores")
    step = models.PositiveIntegerField()  # training steps behind the checkpoint
    split = models.CharField(max_length=8, choices=SPLIT_CHOICES)
    arm = models.CharField(max_length=8, choices=ARM_CHOICES)
    n = models.PositiveIntegerField()  # scored episodes
    success = models.FloatField()  # share of n
    reward = models.FloatField()  # mean over n
    path = models.CharField(max_length=300)  # the evaluation's folder

    class Meta:
        ordering = ["experiment", "step", "split", "arm"]
        constraints = [
            models.UniqueConstraint(
                fields=["experiment", "step", "split", "arm"], name="score_once"
            )
        ]
        verbose_name = _("checkpoint score")
        verbose_name_plural = _("checkpoint scores")

    def __str__(self) -> str:
        return f"{self.experiment} step {self.step} {self.split} {self.arm}: {self.success:.3f}"
