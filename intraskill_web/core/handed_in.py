"""Work that people ask for and one job does: replays, exports, evaluation orders.

A row says at which host it was handed in, because its files lie there. Who works on it holds the
kernel's lock of its ``workplace``; so the reconciler (``jobs/left_over.py``) sees when nobody does
and hands it in again. Who hands it in again at another host takes it away from this one: then what
still works here writes nothing more into the row.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext

UNFINISHED = ("requested", "running", "stopping")


def this_host() -> str:
    """The host of this process."""
    return str(settings.INTRASKILL_HOST_NAME)


class HandedIn(models.Model):
    """A row that a job works on, until its state says how that ended."""

    JOB: ClassVar[str]  # the function that a worker calls with the row's id
    state: str
    error: str
    host = models.CharField(max_length=120, default=this_host, editable=False)
    # how often it was handed in by itself, since a person did
    tries = models.PositiveSmallIntegerField(default=0, editable=False)

    class Meta:
        abstract = True

    @property
    def workplace(self) -> Path:
        """The folder whose lock is held while somebody works on it."""
        raise NotImplementedError

    @property
    def own(self) -> models.QuerySet[Any]:
        """The row, as long as it is this host's: what a job reads and writes it through."""
        return type(self)._default_manager.filter(pk=self.pk, host=this_host())

    @property
    def why(self) -> str:
        """What went wrong, in the reader's language where the words are of this installation."""
        return gettext(self.error) if self.error else ""

    @property
    def unfinished(self) -> bool:
        """Whether it waits for a worker or is with one."""
        return self.state in UNFINISHED
