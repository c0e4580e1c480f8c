from __future__ import annotations

from django.contrib import admin

from intraskill_web.core.admin_base import ReadOnlyAdmin
from intraskill_web.ledger.models import Candidate


@admin.register(Candidate)
class CandidateAdmin(ReadOnlyAdmin):
    list_display = ["round", "candidate_id", "operation", "target_chunk_id", "status", "effect"]
    list_filter = ["operation", "status", "experiment"]
    list_select_related = ["round__experiment"]
    search_fields = ["candidate_id", "title", "content", "target_chunk_id"]
