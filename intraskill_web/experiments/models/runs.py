"""Experiment → Round → Stage → Attempt: what was asked for, and what became of it.

States change only through ``intraskill_web.experiments.moves``; a stage is in the state of its
latest attempt, a round's and an experiment's state is computed from the stages.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from intraskill_web.experiments.states import (
    ROUND_STATE_CHOICES,
    STAGE_CHOICES,
    STAGE_ORDER,
    STATE_CHOICES,
)
from jobs.transitions import ACTIVE, RoundState, State

if TYPE_CHECKING:
    from django.db.models.fields.related_descriptors import RelatedManager

ENGINE_CHOICES = [("local", _("embedded")), ("slime", "slime")]


class Experiment(models.Model):
    """A sequence of rounds from one seed; ``config`` is the frozen ``ExperimentConfig``."""

    name = models.SlugField(max_length=80, unique=True)
    engine = models.CharField(max_length=16, choices=ENGINE_CHOICES, default="local")
    config = models.JSONField(default=dict)
    config_sha256 = models.CharField(max_length=64, blank=True)
    seed = models.BigIntegerField(default=0)
    rounds_planned = models.PositiveIntegerField(default=1)
    state = models.CharField(
        max_length=16, choices=ROUND_STATE_CHOICES, default=RoundState.PLANNED.value
    )
    auto_continue = models.BooleanField(default=True)  # go on to the next round by itself
    hold_reason = models.TextField(blank=True)  # why the next round did not begin by itself
    pause_after_stage = models.BooleanField(default=False)  # finish this stage, start no other
    host = models.CharField(max_length=120, blank=True)  # where it must run; empty: anywhere
    sweep = models.ForeignKey(
        "Sweep", null=True, blank=True, on_delete=models.SET_NULL, related_name="experiments"
    )
    arm = models.CharField(max_length=40, blank=True)  # of the sweep
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True, db_index=True)

    if TYPE_CHECKING:
        rounds: RelatedManager[Round]

    class Meta:
        ordering = ["-id"]
        permissions = [("operate", _("Can start, stop and resume rounds"))]
        verbose_name = _("experiment")
        verbose_name_plural = _("experiments")

    def __str__(self) -> str:
        return self.name

    @property
    def folder(self) -> Path:
        """The run folder; paths of documents and episodes are relative to it."""
        return Path(settings.INTRASKILL_HOME) / "runs" / self.name

    @property
    def imported(self) -> str:
        """What it was imported from; empty for one that ran here."""
        return str(self.config.get("imported", ""))


class Round(models.Model):
    """One turn of the loop: freeze, train, analyse, validate, gate, select."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="rounds")
    number = models.PositiveIntegerField()  # from 0
    state = models.CharField(
        max_length=16, choices=ROUND_STATE_CHOICES, default=RoundState.PLANNED.value
    )
    started_at = models.DateTimeField(null=True, blank=True)
    # its own ExperimentConfig where it differs from the experiment's; empty: as frozen there
    config = models.JSONField(default=dict, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    updated_at = models.DateTimeField(auto_now=True, db_index=True)

    if TYPE_CHECKING:
        stages: RelatedManager[Stage]

    class Meta:
        ordering = ["experiment", "number"]
        constraints = [
            models.UniqueConstraint(fields=["experiment", "number"], name="round_number_once")
        ]
        verbose_name = _("round")
        verbose_name_plural = _("rounds")

    def __str__(self) -> str:
        return f"{self.experiment.name} / {self.number}"

    @property
    def settings(self) -> dict[str, Any]:
        """The configuration that this round runs with."""
        own: dict[str, Any] = self.config or self.experiment.config
        return own

    @property
    def folder(self) -> Path:
        """``round-000`` and so on, in the experiment's folder."""
        return self.experiment.folder / f"round-{self.number:03d}"


class Stage(models.Model):
    """One of the six stages of a round; all six rows exist from the round's start."""

    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="stages")
    kind = models.CharField(max_length=16, choices=STAGE_CHOICES)
    position = models.PositiveSmallIntegerField()  # 0…5, the order in which they run
    state = models.CharField(  # empty: not begun
        max_length=16, choices=STATE_CHOICES, blank=True, default="", db_index=True
    )
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    unit = models.CharField(max_length=24, blank=True)
    eta_seconds = models.FloatField(null=True, blank=True)
    message = models.CharField(max_length=500, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)  # of the first attempt
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.JSONField(default=dict, blank=True)  # the figures that the stage is about
    updated_at = models.DateTimeField(auto_now=True, db_index=True)

    if TYPE_CHECKING:
        attempts: RelatedManager[Attempt]

    class Meta:
        ordering = ["round", "position"]
        constraints = [models.UniqueConstraint(fields=["round", "kind"], name="stage_kind_once")]
        verbose_name = _("stage")
        verbose_name_plural = _("stages")

    def __str__(self) -> str:
        return f"{self.round} / {self.kind}"

    def save(self, *args: object, **kwargs: object) -> None:
        self.position = STAGE_ORDER.index(self.kind)
        super().save(*args, **kwargs)  # type: ignore[arg-type]

    @property
    def seconds(self) -> float | None:
        """From the start to the end, or to now."""
        return _seconds(self.started_at, self.ended_at)

    @property
    def percent(self) -> int | None:
        """Whole per cent done; None while the total is unknown."""
        return None if not self.total else min(100, 100 * self.done // self.total)


class Attempt(models.Model):
    """One try at a stage, with everything needed to find its process again."""

    stage = models.ForeignKey(Stage, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()  # from 1
    state = models.CharField(
        max_length=16, choices=STATE_CHOICES, default=State.REQUESTED.value, db_index=True
    )
    # why it exists: a changed configuration (dotted key → [before, after]), or a stage left out
    changes = models.JSONField(default=dict, blank=True)
    skip_reason = models.CharField(max_length=300, blank=True)
    # the queue's side: one job watches an attempt; a re-adoption is a new job
    job_id = models.CharField(max_length=64, blank=True)
    executions = models.PositiveIntegerField(default=0)  # jobs made for this attempt
    queue = models.CharField(max_length=160, blank=True)  # of its latest job; empty: none yet
    queued_at = models.DateTimeField(null=True, blank=True)  # when that job was handed in
    worker = models.CharField(max_length=120, blank=True)
    watcher_pid = models.PositiveIntegerField(null=True, blank=True)
    watcher_started = models.CharField(max_length=64, blank=True)  # start token, see jobs.process
    # the process's side
    host = models.CharField(max_length=120, blank=True)
    command = models.CharField(max_length=64, blank=True)  # which of the stage's commands runs
    pid = models.PositiveIntegerField(null=True, blank=True)
    pgid = models.PositiveIntegerField(null=True, blank=True)
    process_started = models.CharField(max_length=64, blank=True)  # start token of pid
    # what happened
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    stop_reason = models.CharField(max_length=24, blank=True)  # operator | shutdown | vanished
    exit_code = models.IntegerField(null=True, blank=True)
    signal = models.CharField(max_length=16, blank=True)  # e.g. SIGKILL
    error = models.TextField(blank=True)
    done_at_start = models.PositiveIntegerField(default=0)  # the stage's progress it began with
    peak_memory_bytes = models.PositiveBigIntegerField(null=True, blank=True)
    log_path = models.CharField(max_length=300, blank=True)  # relative to the home folder
    config_sha256 = models.CharField(max_length=64, blank=True)
    environment = models.JSONField(default=dict, blank=True)  # versions, threads, commit
    updated_at = models.DateTimeField(auto_now=True, db_index=True)

    class Meta:
        ordering = ["stage", "number"]
        constraints = [
            models.UniqueConstraint(fields=["stage", "number"], name="attempt_number_once"),
            models.UniqueConstraint(
                fields=["stage"],
                condition=Q(state__in=sorted(ACTIVE)),
                name="one_active_attempt_a_stage",
            ),
        ]
        indexes = [models.Index(F("heartbeat_at"), name="attempt_heartbeat")]
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")

    def __str__(self) -> str:
        return f"{self.stage} #{self.number}"

    @property
    def log_file(self) -> Path:
        """The attempt's log on this host."""
        return Path(settings.INTRASKILL_HOME) / self.log_path

    @property
    def cause(self) -> str:
        """The last line of the error: of a traceback, the one that names the fault."""
        lines = self.error.strip().splitlines()
        return lines[-1].strip() if lines else ""

    @property
    def seconds(self) -> float | None:
        """From the start to the end, or to now."""
        return _seconds(self.started_at, self.ended_at)


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    if start is None:
        return None
    return ((end or timezone.now()) - start).total_seconds()
