from __future__ import annotations

from django.contrib import admin

from intraskill_web.core.admin_base import ReadOnlyAdmin
from intraskill_web.reports.models import EvaluationOrder, Export


@admin.register(Export)
class ExportAdmin(ReadOnlyAdmin):
    list_display = ["pk", "experiment", "state", "languages", "files", "bytes", "created_at"]
    list_filter = ["state"]
    list_select_related = ["experiment"]
    search_fields = ["experiment__name", "=manifest_sha256"]


@admin.register(EvaluationOrder)
class EvaluationOrderAdmin(ReadOnlyAdmin):
    list_display = ["pk", "experiment", "name", "split", "state", "done", "total", "created_at"]
    list_filter = ["state", "split"]
    list_select_related = ["experiment"]
    search_fields = ["experiment__name", "name"]
