"""The newest preflight of what is to be started."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Preflight(models.Model):
    """What the checks found for ``target``: an experiment's next round, or a launch file.

    ``key`` names the inputs they looked at; a report of other inputs counts for nothing.
    """

    target = models.CharField(max_length=200, unique=True)
    key = models.CharField(max_length=64)
    ready = models.BooleanField(default=False)
    checks = models.JSONField(default=list, blank=True)  # of each: name, state, detail, remedy
    seconds = models.FloatField(default=0.0)  # what looking took
    checked_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-checked_at"]
        verbose_name = _("preflight")
        verbose_name_plural = _("preflights")

    def __str__(self) -> str:
        return self.target
