"""Configurations as numbered revisions that never change, and the experiments that used them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from intraskill_web.experiments.models import Experiment

if TYPE_CHECKING:
    from django.db.models.fields.related_descriptors import RelatedManager

AS_BEGUN = "As experiment {} began"  # the reason of what nobody wrote down
KIND_CHOICES = [
    ("gate", _("gate")),
    ("analyst", _("analyst")),
    ("curriculum", _("curriculum")),
    ("launch", _("launch")),
]


class ConfigRevision(models.Model):
    """Revision ``number`` of one kind. To change it is to add the next one, with a reason.

    ``document`` is the checked value with all defaults, ``text`` the YAML as it was handed in,
    byte by byte.
    """

    kind = models.CharField(_("kind"), max_length=16, choices=KIND_CHOICES)
    number = models.PositiveIntegerField(_("number"))
    document = models.JSONField(_("values"))
    text = models.TextField("YAML")
    sha256 = models.CharField(max_length=64, db_index=True)  # of the document
    reason = models.TextField(_("reason"))
    based_on = models.ForeignKey(
        "self",
        verbose_name=_("based on"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("author"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    created_at = models.DateTimeField(_("time"), auto_now_add=True)

    if TYPE_CHECKING:
        uses: RelatedManager[ConfigUse]

        def get_kind_display(self) -> str: ...

    class Meta:
        ordering = ["kind", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["kind", "number"], name="config_number_once")
        ]
        verbose_name = _("configuration revision")
        verbose_name_plural = _("configuration revisions")

    def __str__(self) -> str:
        return f"{self.get_kind_display()} r{self.number}"

    @property
    def why(self) -> str:
        """The reason in the reader's language where it was not written by a person."""
        before, after = AS_BEGUN.split("{}")
        name = self.reason.removeprefix(before).removesuffix(after)
        if self.reason == AS_BEGUN.format(name):
            return gettext("As experiment %(name)s began") % {"name": name}
        return self.reason

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError("a revision never changes; add the next one")
        super().save(*args, **kwargs)


class ConfigUse(models.Model):
    """An experiment that began with a revision; the database then refuses to delete it."""

    revision = models.ForeignKey(ConfigRevision, on_delete=models.PROTECT, related_name="uses")
    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="config_uses")

    class Meta:
        ordering = ["revision", "experiment"]
        constraints = [
            models.UniqueConstraint(fields=["revision", "experiment"], name="config_use_once")
        ]
        verbose_name = _("use of a configuration")
        verbose_name_plural = _("uses of configurations")

    def __str__(self) -> str:
        return f"{self.experiment}: {self.revision}"
