"""One typed row an episode, no body, and the terms it is found by.

``path`` and ``line`` say where a trace is, ``pack``, ``body_at`` and ``body_size`` where its
compressed copy lies (``bodies.py``).
"""

from __future__ import annotations

from pathlib import Path

from django.db import models
from django.utils.translation import gettext_lazy as _

from intraskill_web.core.labels import OUTCOMES, PURPOSES
from intraskill_web.experiments.models import Experiment, Round

SEE_GOAL = "see_private_goal"


class Episode(models.Model):
    """One episode. Reward parts and success are empty where the episode was not scored."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="episodes")
    round = models.ForeignKey(
        Round, on_delete=models.CASCADE, related_name="episodes", null=True, blank=True
    )
    purpose = models.CharField(max_length=12, choices=list(PURPOSES.items()))
    arm = models.CharField(max_length=8, blank=True)  # bare | full | masked | new | old
    episode_id = models.CharField(max_length=120)  # as in the trace
    status = models.CharField(max_length=12)  # completed | failed
    step = models.PositiveIntegerField(null=True, blank=True)  # training step
    group_index = models.PositiveIntegerField(null=True, blank=True)
    sample_id = models.PositiveIntegerField(default=0)
    task_id = models.PositiveIntegerField()
    split = models.CharField(max_length=8)
    treatment_mode = models.CharField(max_length=32, blank=True)  # skill_free | assisted | …
    skill_ids = models.JSONField(default=list)  # shown, in the order of the prompt
    skill_count = models.PositiveSmallIntegerField(default=0)
    reward = models.FloatField(null=True, blank=True)
    success = models.BooleanField(null=True, blank=True)
    scored = models.BooleanField(default=False)
    r_type = models.FloatField(null=True, blank=True)
    r_att = models.FloatField(null=True, blank=True)
    r_option = models.FloatField(null=True, blank=True)
    r_price = models.FloatField(null=True, blank=True)
    r_loose = models.FloatField(null=True, blank=True)
    r_strict = models.FloatField(null=True, blank=True)
    r_success = models.FloatField(null=True, blank=True)
    outcome = models.CharField(max_length=12, choices=list(OUTCOMES.items()), blank=True)
    termination = models.CharField(max_length=24, blank=True)
    turns = models.PositiveIntegerField(default=0)
    tokens = models.PositiveIntegerField(null=True, blank=True)  # sampled by the policy
    invalid_actions = models.PositiveIntegerField(default=0)
    protocol_errors = models.PositiveIntegerField(default=0)
    advantage = models.FloatField(null=True, blank=True)
    admitted = models.BooleanField(null=True, blank=True)  # its group was trained on
    triage = models.CharField(max_length=48, blank=True)  # of its group
    error = models.CharField(max_length=300, blank=True)
    instruction = models.TextField(blank=True)
    category = models.CharField(max_length=80, blank=True)  # of what was bought or last looked at
    checkpoint = models.CharField(max_length=80, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    duration_ms = models.FloatField(null=True, blank=True)
    behaviour = models.JSONField(default=dict, blank=True)  # by metric, gate-analysis.md §14.1
    path = models.CharField(max_length=300)  # of the trace file, in the experiment's folder
    line = models.PositiveIntegerField()  # of the trace in that file, from 0
    pack = models.PositiveIntegerField(null=True, blank=True)  # none: only the trace file
    body_at = models.PositiveBigIntegerField(default=0)
    body_size = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-id"]
        permissions = [(SEE_GOAL, "Can see the private goal of an episode")]
        constraints = [
            models.UniqueConstraint(fields=["experiment", "path", "line"], name="trace_once")
        ]
        indexes = [
            models.Index(fields=["experiment", "purpose", "step"], name="episode_purpose_step"),
            models.Index(fields=["experiment", "task_id"], name="episode_task"),
            models.Index(fields=["experiment", "group_index"], name="episode_group"),
            models.Index(fields=["round", "purpose", "arm"], name="episode_round_arm"),
            models.Index(fields=["episode_id"], name="episode_trace_id"),
            # newest first within one value: a list stops after its first page
            models.Index(fields=["outcome", "id"], name="episode_outcome"),
            models.Index(fields=["purpose", "id"], name="episode_purpose"),
            models.Index(fields=["purpose", "outcome", "id"], name="episode_purpose_outcome"),
            models.Index(fields=["triage", "id"], name="episode_triage"),
            models.Index(fields=["termination", "id"], name="episode_termination"),
            models.Index(fields=["treatment_mode", "id"], name="episode_treatment"),
            models.Index(fields=["category", "id"], name="episode_category"),
            models.Index(fields=["checkpoint", "id"], name="episode_checkpoint"),
            # lists ordered by a column; most failures lie behind half of all rewards
            models.Index(fields=["outcome", "reward", "id"], name="episode_outcome_reward"),
            *(
                models.Index(fields=[name, "id"], name=f"episode_by_{name}")
                for name in ("reward", "turns", "tokens", "protocol_errors", "invalid_actions")
            ),
        ]
        verbose_name = _("episode")
        verbose_name_plural = _("episodes")

    def __str__(self) -> str:
        return f"{self.experiment_id}:{self.episode_id}"

    @property
    def file(self) -> Path:
        """The trace file on this host."""
        return self.experiment.folder / self.path


class SearchRow(models.Model):
    """The index terms of an episode on SQLite: an FTS5 table (PostgreSQL: ``postings.py``).

    Made by the migration, filled by ``publish.py``, asked with the lookup ``has_terms``
    (``terms.py``). The column of the same name as the table is how FTS5 is asked.
    """

    episode = models.OneToOneField(
        Episode,
        primary_key=True,
        db_column="rowid",
        related_name="search",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
    )
    terms = models.TextField(db_column="episodes_search")

    class Meta:
        managed = False
        db_table = "episodes_search"

    def __str__(self) -> str:
        return str(self.pk)
