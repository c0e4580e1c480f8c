"""Replays of an episode's task."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from intraskill_web.core.handed_in import HandedIn
from intraskill_web.episodes.models.episode import Episode


class Replay(HandedIn):
    """An episode's task played again under another treatment or checkpoint: what if.

    Kept apart from what training and gates made: no row of it is an ``Episode``, and its traces lie
    under ``replays/<id>`` of the home.
    """

    STATES = {
        "requested": _("waiting"),
        "running": _("running"),
        "succeeded": _("succeeded"),
        "failed": _("failed"),
    }
    JOB = "jobs.episodes.replay.run_replay"
    SERVED = "served:"  # in front of the name of a served model (served.py)
    episode = models.ForeignKey(Episode, on_delete=models.CASCADE, related_name="replays")
    skill_ids = models.JSONField(default=list)  # shown, in the order of the bank
    checkpoint = models.CharField(max_length=200)  # folder in the experiment's, or served:<name>
    n = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=12, choices=list(STATES.items()), default="requested")
    error = models.CharField(max_length=500, blank=True)
    outcomes = models.JSONField(default=list)  # {"reward", "success", "turns", "termination"}
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        verbose_name = _("replay")
        verbose_name_plural = _("replays")

    def __str__(self) -> str:
        return f"{self.episode_id}: {self.n}"

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return Path(settings.INTRASKILL_HOME) / "replays" / str(self.pk)

    workplace = folder

    @property
    def active(self) -> bool:
        """Whether it waits for its turn or is being played."""
        return self.state in ("requested", "running")

    @property
    def served(self) -> str:
        """The name of the served model that plays; empty for a checkpoint of the run."""
        name = self.checkpoint
        return name.removeprefix(self.SERVED) if name.startswith(self.SERVED) else ""
