"""Filters that people kept under a name."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


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
