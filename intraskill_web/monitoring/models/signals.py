"""Signals in the inbox. One row an onset: it opens when a rule begins to hold and closes when it
ends; a database constraint keeps two watchers from opening the same twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from intraskill_web.experiments.models import Round

if TYPE_CHECKING:
    from django.db.models.fields.related_descriptors import RelatedManager

LEVEL_CHOICES = [("open", _("needs a look")), ("info", _("waits for somebody"))]


class SignalEvent(models.Model):
    """One onset of one rule. ``facts`` are its numbers when it opened; words are made from them in
    the reader's language.
    """

    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="signal_events")
    kind = models.CharField(max_length=32)  # the rule, see monitoring.signals.rules
    subject = models.CharField(max_length=200, blank=True)  # e.g. a chunk's id; empty: the round
    level = models.CharField(max_length=8, choices=LEVEL_CHOICES)
    facts = models.JSONField(default=dict, blank=True)
    opened_at = models.DateTimeField(auto_now_add=True, db_index=True)
    closed_at = models.DateTimeField(null=True, blank=True)

    if TYPE_CHECKING:
        deliveries: RelatedManager[models.Model]
        reads: RelatedManager[SignalRead]

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["round", "kind", "subject"],
                condition=Q(closed_at__isnull=True),
                name="one_open_signal_of_a_kind",
            )
        ]
        verbose_name = _("signal")
        verbose_name_plural = _("signals")

    def __str__(self) -> str:
        return f"{self.round} {self.kind} {self.subject}".strip()


class SignalRead(models.Model):
    """Somebody has seen a signal."""

    event = models.ForeignKey(SignalEvent, on_delete=models.CASCADE, related_name="reads")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "event"], name="signal_read_once")]
        verbose_name = _("read signal")
        verbose_name_plural = _("read signals")

    def __str__(self) -> str:
        return f"{self.user} {self.event}"
