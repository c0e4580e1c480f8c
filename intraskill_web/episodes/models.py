"""The episode index: one typed row an episode, no body. The trace stays in its file.

The index can be rebuilt from the files; ``path`` and ``line`` say where the trace is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.utils.translation import gettext_lazy as _

from intraskill_web.experiments.models import Experiment, Round

if TYPE_CHECKING:
    from pathlib import Path

PURPOSE_LABELS = {
    "train": _("training"),
    "retry": _("full-skill retry"),
    "baseline": _("starting checkpoint"),
    "bare": _("validation, bare"),
    "full": _("validation, full skill"),
    "masked": _("gate, masked"),
    "confirm": _("gate, confirmation"),
    "test": _("test"),
}


class Episode(models.Model):
    """One episode. Reward parts and success are empty where the episode was not scored."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="episodes")
    round = models.ForeignKey(
        Round, on_delete=models.CASCADE, related_name="episodes", null=True, blank=True
    )
    purpose = models.CharField(max_length=12, choices=list(PURPOSE_LABELS.items()))
    arm = models.CharField(max_length=8, blank=True)  # bare | full | masked | new | old
    episode_id = models.CharField(max_length=120)  # as in the trace
    status = models.CharField(max_length=12)  # completed | failed
    step = models.PositiveIntegerField(null=True, blank=True)  # training step
    group_index = models.PositiveIntegerField(null=True, blank=True)
    sample_id = models.PositiveIntegerField(default=0)
    task_id = models.PositiveIntegerField()
    split = models.CharField(max_length=8)
    treatment_mode = models.CharField(max_length=32, blank=True)  # skill_free | assisted | …
    skill_ids = models.JSONField(default=list)  # shown, in the order of the prompt
    skill_count = models.PositiveSmallIntegerField(default=0)
    reward = models.FloatField(null=True, blank=True)
    success = models.BooleanField(null=True, blank=True)
    scored = models.BooleanField(default=False)
    r_type = models.FloatField(null=True, blank=True)
    r_att = models.FloatField(null=True, blank=True)
    r_option = models.FloatField(null=True, blank=True)
    r_price = models.FloatField(null=True, blank=True)
    r_loose = models.FloatField(null=True, blank=True)
    r_strict = models.FloatField(null=True, blank=True)
    r_success = models.FloatField(null=True, blank=True)
    termination = models.CharField(max_length=24, blank=True)
    turns = models.PositiveIntegerField(default=0)
    tokens = models.PositiveIntegerField(null=True, blank=True)  # sampled by the policy
    invalid_actions = models.PositiveIntegerField(default=0)
    protocol_errors = models.PositiveIntegerField(default=0)
    advantage = models.FloatField(null=True, blank=True)
    admitted = models.BooleanField(null=True, blank=True)  # its group was trained on
    triage = models.CharField(max_length=48, blank=True)  # of its group
    error = models.CharField(max_length=300, blank=True)
    instruction = models.TextField(blank=True)
    path = models.CharField(max_length=300)  # of the trace file, in the experiment's folder
    line = models.PositiveIntegerField()  # of the trace in that file, from 0

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["experiment", "path", "line"], name="trace_once")
        ]
        indexes = [
            models.Index(fields=["experiment", "purpose", "step"], name="episode_purpose_step"),
            models.Index(fields=["experiment", "task_id"], name="episode_task"),
            models.Index(fields=["experiment", "group_index"], name="episode_group"),
            models.Index(fields=["round", "purpose", "arm"], name="episode_round_arm"),
            models.Index(fields=["episode_id"], name="episode_trace_id"),
        ]
        verbose_name = _("episode")
        verbose_name_plural = _("episodes")

    def __str__(self) -> str:
        return f"{self.experiment_id}:{self.episode_id}"

    @property
    def file(self) -> Path:
        """The trace file on this host."""
        return self.experiment.folder / self.path


class IngestedFile(models.Model):
    """How far a file was read into rows, so that reading again adds nothing twice."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="+")
    path = models.CharField(max_length=300)  # relative to the experiment's folder
    size = models.PositiveBigIntegerField(default=0)  # bytes read, up to the last whole line
    tail_start = models.PositiveBigIntegerField(default=0)  # where that last line begins
    tail_sha256 = models.CharField(max_length=64, blank=True)  # of that line
    lines = models.PositiveIntegerField(default=0)
    bad_lines = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["experiment", "path"], name="ingested_once")]
        verbose_name = _("ingested file")
        verbose_name_plural = _("ingested files")

    def __str__(self) -> str:
        return self.path
