"""Exports: every static report that was asked for, and what became of it."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from intraskill_web.experiments.models import Experiment
from intraskill_web.reports.silence import Told

STATES = [
    ("requested", _("requested")),
    ("running", _("running")),
    ("succeeded", _("succeeded")),
    ("failed", _("failed")),
]


class Export(Told):
    """One report of one experiment, or a comparison of several (``names``, without experiment).

    The folder is made at once when everything is ready, so that it is whole or absent.
    """

    JOB = "jobs.stages.report.run_export"
    experiment = models.ForeignKey(
        Experiment, on_delete=models.CASCADE, related_name="exports", null=True, blank=True
    )
    names = models.JSONField(default=list)  # the experiments, in order
    languages = models.CharField(max_length=40, default="en,zh")
    archive = models.BooleanField(default=True)
    state = models.CharField(max_length=12, choices=STATES, default="requested")
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    message = models.CharField(max_length=40, blank=True)  # the part that is being made
    files = models.PositiveIntegerField(default=0)
    bytes = models.PositiveBigIntegerField(default=0)
    manifest_sha256 = models.CharField(max_length=64, blank=True)
    seconds = models.FloatField(null=True, blank=True)
    problems = models.JSONField(default=list, blank=True)  # of the check that follows
    checks = models.JSONField(default=dict, blank=True)
    error = models.TextField(blank=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-id"]
        verbose_name = _("export")
        verbose_name_plural = _("exports")

    def __str__(self) -> str:
        return f"{'+'.join(self.names)} #{self.pk}"

    @property
    def folder(self) -> Path:
        """The site on this host; its archive lies beside it."""
        name = "-".join(self.names)[:80] or "report"
        return self.workplace / name

    @property
    def workplace(self) -> Path:
        """Where who makes it holds the lock."""
        return Path(settings.INTRASKILL_HOME) / "reports" / str(self.pk)

    @property
    def there(self) -> bool:
        """Whether the site can be opened on this host."""
        return self.state == "succeeded" and self.folder.is_dir()

    @property
    def archive_file(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.zip")

    @property
    def percent(self) -> int:
        """Whole per cent done."""
        return 100 * self.done // self.total if self.total else 0


ORDER_STATES = [
    ("planned", _("planned")),
    ("requested", _("requested")),
    ("running", _("running")),
    ("stopping", _("stopping")),
    ("stopped", _("stopped")),
    ("succeeded", _("succeeded")),
    ("failed", _("failed")),
]


class EvaluationOrder(Told):
    """An evaluation that somebody asked for: arms of checkpoint × bank on one split.

    Its files lie under ``orders/<name>/<arm>`` of the run and are read by analyses only: nothing of
    an order reaches training, the analyst or a gate. Running again goes on where the files end.
    """

    JOB = "jobs.reports.orders.run_order"
    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="orders")
    name = models.SlugField(max_length=40)
    split = models.CharField(max_length=8)
    arms = models.JSONField(default=list)  # {name, step, bank, checkpoint, skillbank}
    limit = models.PositiveIntegerField(null=True, blank=True)  # first tasks; empty: all
    repeats = models.PositiveIntegerField(default=1)
    reason = models.CharField(max_length=300, blank=True)  # asked for when the split is test
    state = models.CharField(max_length=12, choices=ORDER_STATES, default="planned")
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    message = models.CharField(max_length=300, blank=True)
    error = models.TextField(blank=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["experiment", "name"], name="order_name_once")
        ]
        verbose_name = _("evaluation order")
        verbose_name_plural = _("evaluation orders")

    def __str__(self) -> str:
        return f"{self.experiment.name} / {self.name}"

    @property
    def folder(self) -> Path:
        """Where its evaluations lie."""
        return self.experiment.folder / "orders" / self.name

    workplace = folder

    @property
    def percent(self) -> int:
        """Whole per cent done."""
        return min(100, 100 * self.done // self.total) if self.total else 0
