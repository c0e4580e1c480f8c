"""A sweep: one configuration in several arms and under several seeds, to be compared."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django.db.models.fields.related_descriptors import RelatedManager

    from intraskill_web.experiments.models.runs import Experiment


CLAIM = timedelta(seconds=15)  # renewed every two seconds by a reconciler that lives


class Sweep(models.Model):
    """Its experiments name their arm; arms and seeds stand in the order in which they are shown."""

    name = models.SlugField(max_length=40, unique=True)
    base = models.JSONField(default=dict)  # the configuration that all arms share
    arms = models.JSONField(default=list)  # keys of presets
    seeds = models.JSONField(default=list)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    # when the process that begins its experiments was last heard of
    claimed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    if TYPE_CHECKING:
        experiments: RelatedManager[Experiment]

    class Meta:
        ordering = ["-id"]
        verbose_name = _("sweep")
        verbose_name_plural = _("sweeps")

    def __str__(self) -> str:
        return self.name

    @property
    def is_claimed(self) -> bool:
        """Whether some process begins its experiments; an old claim was left by one that died."""
        return self.claimed_at is not None and timezone.now() - self.claimed_at <= CLAIM
