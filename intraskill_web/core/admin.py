from __future__ import annotations

from django.contrib import admin

from intraskill_web.core.admin_base import ReadOnlyAdmin
from intraskill_web.core.models import AuditEvent


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    list_display = ["at", "actor", "action", "experiment", "subject"]
    list_filter = ["action", "at", "actor"]
    date_hierarchy = "at"
    list_select_related = ["actor"]
    search_fields = ["experiment", "subject", "action", "actor__username"]
