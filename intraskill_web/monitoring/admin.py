from __future__ import annotations

from django.contrib import admin

from intraskill_web.core.admin_base import ReadOnlyAdmin
from intraskill_web.monitoring.models import (
    Channel,
    Delivery,
    MetricPoint,
    Preflight,
    SignalEvent,
    UpdatePoint,
)


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


@admin.register(SignalEvent)
class SignalEventAdmin(ReadOnlyAdmin):
    list_display = ["opened_at", "round", "kind", "subject", "level", "closed_at"]
    list_filter = ["kind", "level"]
    list_select_related = ["round__experiment"]
    search_fields = ["=kind", "round__experiment__name"]


@admin.register(Channel)
class ChannelAdmin(ReadOnlyAdmin):
    list_display = ["kind", "target", "enabled", "quiet_from", "quiet_to", "time_zone"]
    exclude = ["secret"]
    search_fields = ["target"]


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin):
    list_display = ["created_at", "channel", "event", "state", "tries", "answer"]
    list_filter = ["state"]
    list_select_related = ["channel", "event__round__experiment"]
    search_fields = ["answer", "channel__target"]


@admin.register(Preflight)
class PreflightAdmin(ReadOnlyAdmin):
    list_display = ["target", "ready", "seconds", "checked_at"]
    list_filter = ["ready"]
    search_fields = ["target"]
