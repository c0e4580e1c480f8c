"""The audit trail: who did what, when. Rows are only ever added."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class AuditEvent(models.Model):
    """One action of a person or of the system (``actor`` empty)."""

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    action = models.CharField(max_length=64, db_index=True)  # e.g. "round.start"
    experiment = models.CharField(max_length=120, blank=True, db_index=True)  # its name
    subject = models.CharField(max_length=200, blank=True)  # e.g. "round 0 / train / attempt 2"
    detail = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["-id"]
        verbose_name = _("audit event")
        verbose_name_plural = _("audit events")

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.action} {self.experiment} {self.subject}"
