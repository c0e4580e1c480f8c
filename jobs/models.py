"""The machines that work: what each has, when it was last seen, who holds its GPU."""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

SEEN_WITHIN = timedelta(seconds=60)  # of a host that is up; its workers write every 15 s


class Host(models.Model):
    """One machine on which workers of this installation run; they write the row.

    ``lease`` is the attempt that holds the host's GPUs: at most one, whatever their number, because
    a stage takes all of a machine.
    """

    name = models.CharField(max_length=120, unique=True)  # INTRASKILL_HOST_NAME
    # of each GPU: index, name, memory_bytes, used_bytes
    gpus = models.JSONField(default=list, blank=True)
    versions = models.JSONField(default=dict, blank=True)  # package or tool → version
    cpus = models.PositiveIntegerField(default=0)
    memory_bytes = models.PositiveBigIntegerField(default=0)
    free_disk_bytes = models.PositiveBigIntegerField(default=0)  # where runs are written
    queues = models.JSONField(default=list, blank=True)  # names its workers listen to
    workers = models.JSONField(default=list, blank=True)  # of each: name, pid, started
    registered_at = models.DateTimeField(default=timezone.now)
    seen_at = models.DateTimeField(default=timezone.now, db_index=True)
    lease = models.OneToOneField(
        "experiments.Attempt",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="leased_host",
    )
    leased_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name"]
        verbose_name = _("host")
        verbose_name_plural = _("hosts")

    def __str__(self) -> str:
        return self.name

    @property
    def is_up(self) -> bool:
        """Whether one of its workers was heard of a moment ago."""
        return bool(self.workers) and timezone.now() - self.seen_at <= SEEN_WITHIN
