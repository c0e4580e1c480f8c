"""What people say about gates and chunks, and versions that people made against the gate.

Nothing here changes what a gate decided. Events are only ever added; the state (labels, signed or
not) follows from them.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from intraskill_web.experiments.models import Experiment
from intraskill_web.gates.models import GateRun
from intraskill_web.skills.models import SkillVersion

EVENT_CHOICES = [
    ("comment", _("comment")),
    ("label", _("label")),
    ("unlabel", _("label taken off")),
    ("sign", _("signed off")),
    ("unsign", _("sign-off withdrawn")),
]


class ReviewEvent(models.Model):
    """One remark about a gate or about a chunk (its logical id).

    ``text`` is the comment, the label's name or the note of a sign-off; ``evidence`` identifies
    what was looked at: the gate's result or the chunk's text at that moment.
    """

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="reviews")
    gate = models.ForeignKey(
        GateRun, null=True, blank=True, on_delete=models.CASCADE, related_name="reviews"
    )
    skill_id = models.CharField(_("chunk"), max_length=120, blank=True)
    kind = models.CharField(_("kind"), max_length=16, choices=EVENT_CHOICES)
    text = models.TextField(_("text"), blank=True)
    evidence = models.CharField(max_length=64, blank=True)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    at = models.DateTimeField(_("time"), auto_now_add=True)

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["experiment", "skill_id"], name="review_of_chunk")]
        constraints = [
            models.CheckConstraint(
                condition=Q(gate__isnull=False, skill_id="")
                | (Q(gate__isnull=True) & ~Q(skill_id="")),
                name="review_of_one_thing",
            )
        ]
        verbose_name = _("review event")
        verbose_name_plural = _("review events")

    def __str__(self) -> str:
        return f"{self.kind}: {self.gate or self.skill_id}"


class Override(models.Model):
    """A version that people made from a selected one, against its gate: recorded, reasoned, marked.

    It never enters the rounds of its experiment; a new experiment can begin with its bank.
    ``chunks`` are ``[{"skill_id", "title", "content", "content_sha256"}]`` in prompt order.
    """

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="overrides")
    base = models.ForeignKey(SkillVersion, on_delete=models.CASCADE, related_name="overrides")
    number = models.PositiveIntegerField()  # from 1, per base
    chunks = models.JSONField()
    bank_sha256 = models.CharField(max_length=64)
    path = models.CharField(max_length=300)  # of the bank, relative to the experiment's folder
    reason = models.TextField(_("reason"))
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    at = models.DateTimeField(_("time"), auto_now_add=True)

    class Meta:
        ordering = ["experiment", "base", "number"]
        constraints = [
            models.UniqueConstraint(fields=["base", "number"], name="override_number_once")
        ]
        verbose_name = _("override")
        verbose_name_plural = _("overrides")

    def __str__(self) -> str:
        return f"{self.experiment} {self.label}"

    @property
    def label(self) -> str:
        """``S2+o1``: made from S2, the first of its kind."""
        return f"{self.base.label}+o{self.number}"
