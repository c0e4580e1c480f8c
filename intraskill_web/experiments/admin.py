from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.urls import reverse

from intraskill_web.core.admin_base import ReadOnlyAdmin
from intraskill_web.experiments.models import (
    Attempt,
    CheckpointScore,
    Document,
    Experiment,
    Round,
    Stage,
    Sweep,
)
from jobs.models import Host


@admin.register(Experiment)
class ExperimentAdmin(ReadOnlyAdmin):
    list_display = ["name", "engine", "state", "rounds_planned", "seed", "owner", "created_at"]
    list_filter = ["engine", "state", "owner"]
    list_select_related = ["owner"]
    search_fields = ["name", "=config_sha256", "owner__username"]

    def view_on_site(self, item: Any) -> str:
        return reverse("experiments:detail", args=[item.name])


@admin.register(Round)
class RoundAdmin(ReadOnlyAdmin):
    list_display = ["experiment", "number", "state", "started_at", "ended_at"]
    list_filter = ["state", "experiment"]
    list_select_related = ["experiment"]
    search_fields = ["experiment__name"]

    def view_on_site(self, item: Any) -> str:
        return reverse("experiments:round", args=[item.experiment.name, item.number])


@admin.register(Stage)
class StageAdmin(ReadOnlyAdmin):
    list_display = ["round", "kind", "state", "done", "total", "message"]
    list_filter = ["kind", "state", "round__experiment"]
    list_select_related = ["round__experiment"]
    search_fields = ["round__experiment__name", "message"]


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    list_display = ["stage", "number", "state", "host", "pid", "started_at", "signal", "exit_code"]
    list_filter = ["state", "host", "stage__kind", "started_at"]
    list_select_related = ["stage__round__experiment"]
    search_fields = ["stage__round__experiment__name", "job_id", "error"]

    def view_on_site(self, item: Any) -> str:
        return reverse("experiments:attempt", args=[item.pk])


@admin.register(Document)
class DocumentAdmin(ReadOnlyAdmin):
    list_display = ["experiment", "path", "kind", "sha256", "size"]
    list_filter = ["kind", "experiment"]
    list_select_related = ["experiment"]
    search_fields = ["path", "=sha256"]


@admin.register(CheckpointScore)
class CheckpointScoreAdmin(ReadOnlyAdmin):
    list_display = ["experiment", "step", "split", "arm", "n", "success", "reward"]
    list_filter = ["split", "arm", "experiment"]
    list_select_related = ["experiment"]
    search_fields = ["experiment__name", "path"]


@admin.register(Sweep)
class SweepAdmin(ReadOnlyAdmin):
    list_display = ["name", "arms", "seeds", "owner", "created_at"]
    list_select_related = ["owner"]
    search_fields = ["name", "owner__username"]

    def view_on_site(self, item: Any) -> str:
        return reverse("experiments:sweep", args=[item.name])


@admin.register(Host)
class HostAdmin(ReadOnlyAdmin):
    list_display = ["name", "cpus", "free_disk_bytes", "seen_at", "lease"]
    list_select_related = ["lease__stage__round__experiment"]
    search_fields = ["name"]
