from __future__ import annotations

from django.contrib import admin

from intraskill_web.core.admin_base import ReadOnlyAdmin
from intraskill_web.monitoring.models import MetricPoint, UpdatePoint


@admin.register(MetricPoint)
class MetricPointAdmin(ReadOnlyAdmin):
    list_display = ["experiment", "name", "step", "value"]
    list_select_related = ["experiment"]
    search_fields = ["=name"]


@admin.register(UpdatePoint)
class UpdatePointAdmin(ReadOnlyAdmin):
    list_display = ["experiment", "name", "update", "value"]
    list_select_related = ["experiment"]
    search_fields = ["=name"]
