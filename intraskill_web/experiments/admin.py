from __future__ import annotations

from django.contrib import admin

from intraskill_web.core.admin_base import ReadOnlyAdmin
from intraskill_web.experiments.models import (
    Attempt,
    CheckpointScore,
    Document,
    Experiment,
    Round,
    Stage,
)


@admin.register(Experiment)
class ExperimentAdmin(ReadOnlyAdmin):
    list_display = ["name", "engine", "state", "rounds_planned", "seed", "owner", "created_at"]
    list_filter = ["engine", "state"]
    list_select_related = ["owner"]
    search_fields = ["name"]


@admin.register(Round)
class RoundAdmin(ReadOnlyAdmin):
    list_display = ["experiment", "number", "state", "started_at", "ended_at"]
    list_filter = ["state"]
    list_select_related = ["experiment"]
    search_fields = ["experiment__name"]


@admin.register(Stage)
class StageAdmin(ReadOnlyAdmin):
    list_display = ["round", "kind", "state", "done", "total", "message"]
    list_filter = ["kind", "state"]
    list_select_related = ["round__experiment"]
    search_fields = ["round__experiment__name"]


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    list_display = ["stage", "number", "state", "host", "pid", "started_at", "signal", "exit_code"]
    list_filter = ["state", "host"]
    list_select_related = ["stage__round__experiment"]
    search_fields = ["stage__round__experiment__name", "job_id"]


@admin.register(Document)
class DocumentAdmin(ReadOnlyAdmin):
    list_display = ["experiment", "path", "kind", "sha256", "size"]
    list_filter = ["kind"]
    list_select_related = ["experiment"]
    search_fields = ["path", "sha256"]


@admin.register(CheckpointScore)
class CheckpointScoreAdmin(ReadOnlyAdmin):
    list_display = ["experiment", "step", "split", "arm", "n", "success", "reward"]
    list_filter = ["split", "arm"]
    list_select_related = ["experiment"]
