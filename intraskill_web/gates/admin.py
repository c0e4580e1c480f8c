from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.urls import reverse

from intraskill_web.core.admin_base import ReadOnlyAdmin
from intraskill_web.gates.models import Contribution, GateRun


@admin.register(GateRun)
class GateRunAdmin(ReadOnlyAdmin):
    list_display = ["round", "profile", "status", "observations", "requested", "delta_mean"]
    list_filter = ["profile", "status", "round__experiment"]
    list_select_related = ["round__experiment"]
    search_fields = ["round__experiment__name", "=pool_sha256", "=assignment_sha256"]

    def view_on_site(self, item: Any) -> str:
        where = reverse("gates:detail", args=[item.round.experiment.name, item.round.number])
        return f"{where}?profile={item.profile}"


@admin.register(Contribution)
class ContributionAdmin(ReadOnlyAdmin):
    list_display = ["gate", "intervention_id", "kind", "coefficient", "se", "rank", "status"]
    list_filter = ["status", "kind", "operation", "gate__round__experiment"]
    list_select_related = ["gate__round__experiment"]
    search_fields = ["intervention_id", "logical_chunk_id", "title"]
