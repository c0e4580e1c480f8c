"""Skill versions (banks), the chunk texts they are made of, and the curricula built on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.utils.translation import gettext_lazy as _

from intraskill_web.experiments.models import Experiment, Round

if TYPE_CHECKING:
    from django.db.models.fields.related_descriptors import RelatedManager


class SkillVersion(models.Model):
    """One bank: S₀ is the start, S₁ what the first gate selected, …"""

    experiment = models.ForeignKey(
        Experiment, on_delete=models.CASCADE, related_name="skill_versions"
    )
    number = models.PositiveIntegerField()
    label = models.CharField(max_length=40)  # e.g. "S1"
    bank_sha256 = models.CharField(max_length=64)
    path = models.CharField(max_length=300)  # of the bank, relative to the experiment's folder
    from_round = models.ForeignKey(  # the round whose gate selected it; empty for S0
        Round, on_delete=models.CASCADE, null=True, blank=True, related_name="selected_versions"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    if TYPE_CHECKING:
        entries: RelatedManager[SkillVersionChunk]

    class Meta:
        ordering = ["experiment", "number"]
        constraints = [
            models.UniqueConstraint(fields=["experiment", "number"], name="skill_number_once")
        ]
        verbose_name = _("skill version")
        verbose_name_plural = _("skill versions")

    def __str__(self) -> str:
        return f"{self.experiment} {self.label}"


class ChunkRevision(models.Model):
    """One text of one chunk: the logical id survives a rewrite, the text's hash does not."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="chunks")
    skill_id = models.CharField(max_length=120)  # the logical id
    content_sha256 = models.CharField(max_length=64)
    content = models.TextField()
    version = models.CharField(max_length=40)
    title = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["experiment", "skill_id", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["experiment", "skill_id", "content_sha256"], name="chunk_text_once"
            )
        ]
        verbose_name = _("chunk revision")
        verbose_name_plural = _("chunk revisions")

    def __str__(self) -> str:
        return f"{self.skill_id}@{self.content_sha256[:8]}"


class SkillVersionChunk(models.Model):
    """A chunk's place in a version, with its estimated effect and the rho it trains with.

    Of a published gate the effect is the coefficient, of a standard one its shrunk value.
    """

    version = models.ForeignKey(SkillVersion, on_delete=models.CASCADE, related_name="entries")
    revision = models.ForeignKey(ChunkRevision, on_delete=models.CASCADE, related_name="entries")
    order = models.PositiveIntegerField()
    effect = models.FloatField(null=True, blank=True)  # what the bank states; rho follows it
    rho = models.FloatField(null=True, blank=True)  # inclusion probability in assisted groups

    class Meta:
        ordering = ["version", "order"]
        constraints = [
            models.UniqueConstraint(fields=["version", "order"], name="version_order_once")
        ]
        verbose_name = _("chunk in a version")
        verbose_name_plural = _("chunks in versions")

    def __str__(self) -> str:
        return f"{self.version}: {self.revision}"


class Curriculum(models.Model):
    """The frozen ``(S_t, q, rho)`` of one round."""

    round = models.OneToOneField(Round, on_delete=models.CASCADE, related_name="curriculum")
    version = models.ForeignKey(SkillVersion, on_delete=models.PROTECT, related_name="curricula")
    state_id = models.CharField(max_length=64, db_index=True)
    schema = models.CharField(max_length=60, blank=True)
    q = models.FloatField()  # share of skill-free groups
    rho_min = models.FloatField(null=True, blank=True)
    rho_max = models.FloatField(null=True, blank=True)
    chunks = models.JSONField(default=list)  # [{"skill_id", "rho", "effect"}] in order
    path = models.CharField(max_length=300)

    class Meta:
        verbose_name = _("curriculum")
        verbose_name_plural = _("curricula")

    def __str__(self) -> str:
        return f"{self.round}: {self.state_id[:8]}"
