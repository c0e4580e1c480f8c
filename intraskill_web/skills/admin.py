from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.urls import reverse

from intraskill_web.core.admin_base import ReadOnlyAdmin
from intraskill_web.skills.models import (
    ChunkRevision,
    Curriculum,
    SkillVersion,
    SkillVersionChunk,
)


@admin.register(SkillVersion)
class SkillVersionAdmin(ReadOnlyAdmin):
    list_display = ["experiment", "label", "bank_sha256", "from_round"]
    list_filter = ["experiment"]
    list_select_related = ["experiment", "from_round__experiment"]
    search_fields = ["experiment__name", "=bank_sha256"]

    def view_on_site(self, item: Any) -> str:
        return reverse("skills:version", args=[item.experiment.name, item.number])


@admin.register(SkillVersionChunk)
class SkillVersionChunkAdmin(ReadOnlyAdmin):
    list_display = ["version", "order", "revision", "effect", "rho"]
    list_filter = ["version__experiment"]
    list_select_related = ["version__experiment", "revision"]
    search_fields = ["revision__skill_id", "revision__title"]


@admin.register(ChunkRevision)
class ChunkRevisionAdmin(ReadOnlyAdmin):
    list_display = ["experiment", "skill_id", "version", "title", "content_sha256"]
    list_filter = ["experiment"]
    list_select_related = ["experiment"]
    search_fields = ["skill_id", "title", "content", "=content_sha256"]

    def view_on_site(self, item: Any) -> str:
        return reverse("skills:chunk", args=[item.experiment.name, item.skill_id])


@admin.register(Curriculum)
class CurriculumAdmin(ReadOnlyAdmin):
    list_display = ["round", "version", "state_id", "q", "rho_min", "rho_max"]
    list_filter = ["round__experiment"]
    list_select_related = ["round__experiment", "version__experiment"]
    search_fields = ["=state_id", "round__experiment__name"]
