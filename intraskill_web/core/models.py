"""Who is signed in, and the audit trail: who did what, when."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.utils.translation import gettext_lazy as _


class Session(AbstractBaseSession):
    """A browser's session that knows its user, so that one query finds both."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+"
    )

    def __str__(self) -> str:
        # not its key, by which anybody could take it over: admin lists what goes with a user
        return f"{self.expire_date:%Y-%m-%d %H:%M}"

    @classmethod
    def get_session_store_class(cls) -> Any:
        """The store of the settings."""
        return import_module(settings.SESSION_ENGINE).SessionStore


class AuditEvent(models.Model):
    """One action of a person or of the system (``actor`` empty). Rows are only ever added."""

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
