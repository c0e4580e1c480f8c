from __future__ import annotations

from django.contrib import admin

from intraskill_web.core.admin_base import ReadOnlyAdmin
from intraskill_web.gates.models import Contribution, GateRun


@admin.register(GateRun)
class GateRunAdmin(ReadOnlyAdmin):
    list_display = ["round", "profile", "status", "observations", "requested", "delta_mean"]
    list_filter = ["profile", "status"]
    list_select_related = ["round__experiment"]


@admin.register(Contribution)
class ContributionAdmin(ReadOnlyAdmin):
    list_display = ["gate", "intervention_id", "kind", "coefficient", "se", "rank", "status"]
    list_filter = ["status", "kind"]
    list_select_related = ["gate__round__experiment"]
    search_fields = ["intervention_id", "logical_chunk_id"]
