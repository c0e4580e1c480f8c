"""The episode index: one typed row an episode, no body.

The index can be rebuilt from the files; ``path`` and ``line`` say where a trace is, ``pack``,
``body_at`` and ``body_size`` where its compressed copy lies (``bodies.py``).
"""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from intraskill_web.core.handed_in import HandedIn
from intraskill_web.experiments.models import Experiment, Round

SEE_GOAL = "see_private_goal"
PURPOSE_LABELS = {
    "train": _("training"),
    "retry": _("full-skill retry"),
    "baseline": _("starting checkpoint"),
    "bare": _("validation, bare"),
    "full": _("validation, full skill"),
    "masked": _("gate, masked"),
    "confirm": _("gate, confirmation"),
    "test": _("test"),
}


OUTCOME_LABELS = {
    "success": _("success"),
    "failure": _("policy failure"),
    "truncated": _("truncated"),
    "technical": _("technical failure"),
}


class Episode(models.Model):
    """One episode. Reward parts and success are empty where the episode was not scored."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="episodes")
    round = models.ForeignKey(
        Round, on_delete=models.CASCADE, related_name="episodes", null=True, blank=True
    )
    purpose = models.CharField(max_length=12, choices=list(PURPOSE_LABELS.items()))
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
    outcome = models.CharField(max_length=12, choices=list(OUTCOME_LABELS.items()), blank=True)
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


class IngestedFile(models.Model):
    """How far a file was read into rows, so that reading again adds nothing twice.

    Offsets are of the file's text: of a compressed file, of what it decompresses to.
    """

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="+")
    path = models.CharField(max_length=300)  # relative to the experiment's folder
    size = models.PositiveBigIntegerField(default=0)  # bytes read, up to the last whole line
    tail_start = models.PositiveBigIntegerField(default=0)  # where that last line begins
    tail_sha256 = models.CharField(max_length=64, blank=True)  # of that line
    lines = models.PositiveIntegerField(default=0)
    bad_lines = models.PositiveIntegerField(default=0)
    # of the file itself when it was last read to its end; equal again means nothing to do
    file_size = models.PositiveBigIntegerField(default=0)
    file_mtime_ns = models.PositiveBigIntegerField(default=0)
    file_sha256 = models.CharField(max_length=64, blank=True)
    read_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["experiment", "path"], name="ingested_once")]
        verbose_name = _("ingested file")
        verbose_name_plural = _("ingested files")

    def __str__(self) -> str:
        return self.path


class BadLine(models.Model):
    """A line that is no episode: where it is, why not, and how it begins."""

    file = models.ForeignKey(IngestedFile, on_delete=models.CASCADE, related_name="bad")
    line = models.PositiveIntegerField()  # from 0
    reason = models.CharField(max_length=300)
    excerpt = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["file", "line"]
        constraints = [models.UniqueConstraint(fields=["file", "line"], name="bad_line_once")]
        verbose_name = _("unreadable line")
        verbose_name_plural = _("unreadable lines")

    def __str__(self) -> str:
        return f"{self.file_id}:{self.line}"


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


class SavedSearch(models.Model):
    """A filter under a name; its state is the query string of the list."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_searches"
    )
    name = models.CharField(max_length=80)
    query = models.CharField(max_length=2000, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="one_name_a_person")]
        verbose_name = _("saved search")
        verbose_name_plural = _("saved searches")

    def __str__(self) -> str:
        return self.name
