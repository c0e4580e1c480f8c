from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.urls import reverse

from intraskill_web.core.admin_base import ReadOnlyAdmin
from intraskill_web.review.models import Override, ReviewEvent


@admin.register(ReviewEvent)
class ReviewEventAdmin(ReadOnlyAdmin):
    list_display = ["at", "author", "kind", "experiment", "gate", "skill_id", "text"]
    list_filter = ["kind", "experiment", "author", "at"]
    list_select_related = ["author", "experiment", "gate__round__experiment"]
    search_fields = ["text", "skill_id"]


@admin.register(Override)
class OverrideAdmin(ReadOnlyAdmin):
    list_display = ["experiment", "label", "author", "at", "reason", "bank_sha256"]
    list_filter = ["experiment", "author", "at"]
    list_select_related = ["experiment", "base", "author"]
    search_fields = ["reason", "=bank_sha256", "experiment__name"]

    def view_on_site(self, item: Any) -> str:
        return reverse("review:override", args=[item.experiment.name, item.pk])
