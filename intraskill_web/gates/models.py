"""Gate runs: the paired experiment that measures each chunk, and what it measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.utils.translation import gettext_lazy as _

from intraskill_web.experiments.models import Round

if TYPE_CHECKING:
    from django.db.models.fields.related_descriptors import RelatedManager

KEPT = ("selected", "held")  # what a gate says of chunks that the next bank holds


class GateRun(models.Model):
    """One gate of a round under one profile. Reward differences are masked minus bare, per task."""

    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="gate_runs")
    profile = models.CharField(max_length=24, default="published")
    status = models.CharField(max_length=24)  # complete | incomplete, with the reason in summary
    pool_sha256 = models.CharField(max_length=64, blank=True)
    assignment_sha256 = models.CharField(max_length=64, blank=True)
    observations = models.PositiveIntegerField(default=0)  # pairs used
    requested = models.PositiveIntegerField(default=0)  # pairs planned
    bare_mean = models.FloatField(null=True, blank=True)
    masked_mean = models.FloatField(null=True, blank=True)
    delta_mean = models.FloatField(null=True, blank=True)
    delta_low = models.FloatField(null=True, blank=True)
    delta_high = models.FloatField(null=True, blank=True)
    summary = models.JSONField(default=dict, blank=True)
    path = models.CharField(max_length=300)
    created_at = models.DateTimeField(auto_now_add=True)

    if TYPE_CHECKING:
        contributions: RelatedManager[Contribution]

    class Meta:
        ordering = ["round", "id"]
        constraints = [
            models.UniqueConstraint(fields=["round", "profile"], name="gate_profile_once")
        ]
        verbose_name = _("gate run")
        verbose_name_plural = _("gate runs")

    def __str__(self) -> str:
        return f"{self.round} gate ({self.profile})"


class Contribution(models.Model):
    """The coefficient of one column: what including this text adds to the reward."""

    gate = models.ForeignKey(GateRun, on_delete=models.CASCADE, related_name="contributions")
    order = models.PositiveIntegerField()  # column order in the design
    intervention_id = models.CharField(max_length=200)
    logical_chunk_id = models.CharField(max_length=120)
    operation = models.CharField(max_length=16, blank=True)  # KEEP | REWRITE | ADD …
    kind = models.CharField(max_length=16, blank=True)  # active | candidate
    title = models.CharField(max_length=200, blank=True)
    coefficient = models.FloatField(null=True, blank=True)
    se = models.FloatField(null=True, blank=True)
    low = models.FloatField(null=True, blank=True)
    high = models.FloatField(null=True, blank=True)
    rank = models.PositiveIntegerField(null=True, blank=True)
    status = models.CharField(max_length=24, blank=True)  # adopted | retained | retired | …
    with_n = models.PositiveIntegerField(default=0)
    without_n = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["gate", "order"]
        constraints = [
            models.UniqueConstraint(fields=["gate", "intervention_id"], name="intervention_once")
        ]
        verbose_name = _("contribution")
        verbose_name_plural = _("contributions")

    def __str__(self) -> str:
        return f"{self.intervention_id}: {self.coefficient}"
