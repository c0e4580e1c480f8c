"""Where signals are sent, and what became of each message."""

from __future__ import annotations

import uuid

from django.db import models
from django.utils.translation import gettext_lazy as _

from intraskill_web.monitoring.models.signals import SignalEvent

KIND_CHOICES = [("email", _("e-mail")), ("webhook", _("webhook"))]
LANGUAGE_CHOICES = [("en", "English"), ("zh-hans", "中文")]
DELIVERY_CHOICES = [
    ("waiting", _("waiting")),
    ("sending", _("being sent")),
    ("sent", _("sent")),
    ("failed", _("failed")),
    ("unsure", _("not known")),
]


class Channel(models.Model):
    """An address that signals go to. Between ``quiet_from`` and ``quiet_to`` messages wait."""

    kind = models.CharField(max_length=8, choices=KIND_CHOICES)
    target = models.CharField(max_length=500)  # addresses separated by commas, or one URL
    secret = models.CharField(max_length=80, blank=True)  # of a webhook: signs what is sent
    enabled = models.BooleanField(default=True)
    with_info = models.BooleanField(default=True)  # also what only waits for somebody
    language = models.CharField(max_length=8, choices=LANGUAGE_CHOICES, default="en")
    quiet_from = models.TimeField(null=True, blank=True)
    quiet_to = models.TimeField(null=True, blank=True)
    time_zone = models.CharField(max_length=64, default="UTC")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["kind", "target"], name="channel_target_once")
        ]
        verbose_name = _("channel")
        verbose_name_plural = _("channels")

    def __str__(self) -> str:
        return f"{self.kind} {self.target}"


class Delivery(models.Model):
    """One message to one channel; ``event`` is empty for a test.

    A message is claimed (``sending``) before it leaves. A sender that dies meanwhile leaves it
    ``unsure``: it may have arrived, so it is never sent again by itself.
    """

    key = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    event = models.ForeignKey(
        SignalEvent, on_delete=models.CASCADE, null=True, blank=True, related_name="deliveries"
    )
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="deliveries")
    state = models.CharField(max_length=8, choices=DELIVERY_CHOICES, default="waiting")
    tries = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField()  # not before
    claimed_at = models.DateTimeField(null=True, blank=True)
    done_at = models.DateTimeField(null=True, blank=True)
    answer = models.CharField(max_length=300, blank=True)  # what the other side said
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["event", "channel"], name="signal_sent_once")
        ]
        indexes = [models.Index(fields=["state", "next_at"], name="delivery_due")]
        verbose_name = _("delivery")
        verbose_name_plural = _("deliveries")

    def __str__(self) -> str:
        return f"{self.channel} {self.event or 'test'}: {self.state}"
