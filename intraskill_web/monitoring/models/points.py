"""Metric series. Rollout steps and optimiser updates are two axes and two tables."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from intraskill_web.experiments.models import Experiment, Round


class MetricPoint(models.Model):
    """One metric at one training step; steps are numbered over the whole experiment, from 1."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="+")
    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="metric_points")
    name = models.CharField(max_length=160)
    step = models.PositiveIntegerField()
    value = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["experiment", "name", "step"], name="metric_once")
        ]
        indexes = [models.Index(fields=["round", "name", "step"], name="metric_of_round")]
        verbose_name = _("metric point")
        verbose_name_plural = _("metric points")

    def __str__(self) -> str:
        return f"{self.name}[{self.step}] = {self.value}"


class UpdatePoint(models.Model):
    """One metric at one optimiser update; updates are numbered over the whole experiment."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="+")
    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="update_points")
    name = models.CharField(max_length=160)
    update = models.PositiveIntegerField()
    step = models.PositiveIntegerField()  # the training step the update belongs to
    value = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["experiment", "name", "update"], name="update_once")
        ]
        indexes = [models.Index(fields=["round", "name", "update"], name="update_of_round")]
        verbose_name = _("update point")
        verbose_name_plural = _("update points")

    def __str__(self) -> str:
        return f"{self.name}[{self.update}] = {self.value}"
