"""What of the trace files is in the index, and which of their lines are no episodes."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from intraskill_web.experiments.models import Experiment


class IngestedFile(models.Model):
    """How far a file was read into rows, so that reading again adds nothing twice.

    Offsets are of the file's text: of a compressed file, of what it decompresses to.
    """

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="+")
    path = models.CharField(max_length=300)  # relative to the experiment's folder
    size = models.PositiveBigIntegerField(default=0)  # bytes read, up to the last whole line
    tail_start = models.PositiveBigIntegerField(default=0)  # where that last line begins
    tail_sha256 = models.CharField(max_length=64, blank=True)  # of that line
    lines = models.PositiveIntegerField(default=0)
    bad_lines = models.PositiveIntegerField(default=0)
    # of the file itself when it was last read to its end; equal again means nothing to do
    file_size = models.PositiveBigIntegerField(default=0)
    file_mtime_ns = models.PositiveBigIntegerField(default=0)
    file_sha256 = models.CharField(max_length=64, blank=True)
    read_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["experiment", "path"], name="ingested_once")]
        verbose_name = _("ingested file")
        verbose_name_plural = _("ingested files")

    def __str__(self) -> str:
        return self.path


class BadLine(models.Model):
    """A line that is no episode: where it is, why not, and how it begins."""

    file = models.ForeignKey(IngestedFile, on_delete=models.CASCADE, related_name="bad")
    line = models.PositiveIntegerField()  # from 0
    reason = models.CharField(max_length=300)
    excerpt = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["file", "line"]
        constraints = [models.UniqueConstraint(fields=["file", "line"], name="bad_line_once")]
        verbose_name = _("unreadable line")
        verbose_name_plural = _("unreadable lines")

    def __str__(self) -> str:
        return f"{self.file_id}:{self.line}"
