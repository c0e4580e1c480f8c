"""The proposal ledger: every candidate text ever compiled, and what became of it."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from intraskill_web.experiments.models import Experiment, Round

SEE_PRIVILEGED = "ledger.see_privileged"


class Candidate(models.Model):
    """A proposed ADD, REWRITE or other operation on the bank, in the round that compiled it."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="candidates")
    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="candidates")
    candidate_id = models.CharField(max_length=200)
    operation = models.CharField(max_length=16)
    target_chunk_id = models.CharField(max_length=120, blank=True)
    title = models.CharField(max_length=200, blank=True)
    content = models.TextField(blank=True)
    status = models.CharField(max_length=24, blank=True)  # pooled | adopted | rejected | …
    effect = models.FloatField(null=True, blank=True)
    rank = models.PositiveIntegerField(null=True, blank=True)
    source_card_ids = models.JSONField(default=list, blank=True)

    class Meta:
        ordering = ["experiment", "round", "candidate_id"]
        permissions = [("see_privileged", _("Can see the privileged part of failure cards"))]
        constraints = [
            models.UniqueConstraint(fields=["round", "candidate_id"], name="candidate_once")
        ]
        verbose_name = _("candidate")
        verbose_name_plural = _("candidates")

    def __str__(self) -> str:
        return self.candidate_id
