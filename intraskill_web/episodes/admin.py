from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin import ShowFacets
from django.urls import reverse

from intraskill_web.core.admin_base import ReadOnlyAdmin
from intraskill_web.episodes.models import Episode, IngestedFile


@admin.register(Episode)
class EpisodeAdmin(ReadOnlyAdmin):
    list_display = ["experiment", "episode_id", "purpose", "step", "task_id", "reward", "success"]
    list_filter = ["purpose", "status", "success", "experiment"]
    show_facets = ShowFacets.NEVER  # a count a filter would read the whole table
    list_select_related = ["experiment"]
    search_fields = ["=episode_id", "=task_id"]

    def view_on_site(self, item: Any) -> str:
        return reverse("episodes:detail", args=[item.pk])


@admin.register(IngestedFile)
class IngestedFileAdmin(ReadOnlyAdmin):
    list_filter = ["experiment"]
    list_display = ["experiment", "path", "size", "lines", "bad_lines"]
    list_select_related = ["experiment"]
    search_fields = ["path"]
