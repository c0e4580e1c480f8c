from __future__ import annotations

from django.contrib import admin

from intraskill_web.core.admin_base import ReadOnlyAdmin
from intraskill_web.episodes.models import Episode, IngestedFile


@admin.register(Episode)
class EpisodeAdmin(ReadOnlyAdmin):
    list_display = ["experiment", "episode_id", "purpose", "step", "task_id", "reward", "success"]
    list_filter = ["purpose", "status"]
    list_select_related = ["experiment"]
    search_fields = ["=episode_id"]


@admin.register(IngestedFile)
class IngestedFileAdmin(ReadOnlyAdmin):
    list_display = ["experiment", "path", "size", "lines", "bad_lines"]
    list_select_related = ["experiment"]
    search_fields = ["path"]
