from __future__ import annotations

from django.contrib import admin

from intraskill_web.core.admin_base import ReadOnlyAdmin
from intraskill_web.skills.models import ChunkRevision, Curriculum, SkillVersion


@admin.register(SkillVersion)
class SkillVersionAdmin(ReadOnlyAdmin):
    list_display = ["experiment", "label", "bank_sha256", "from_round"]
    list_select_related = ["experiment", "from_round__experiment"]
    search_fields = ["experiment__name", "bank_sha256"]


@admin.register(ChunkRevision)
class ChunkRevisionAdmin(ReadOnlyAdmin):
    list_display = ["experiment", "skill_id", "version", "title", "content_sha256"]
    list_select_related = ["experiment"]
    search_fields = ["skill_id", "title"]


@admin.register(Curriculum)
class CurriculumAdmin(ReadOnlyAdmin):
    list_display = ["round", "version", "state_id", "q", "rho_min", "rho_max"]
    list_select_related = ["round__experiment", "version__experiment"]
    search_fields = ["state_id"]
