"""Revisions of configurations in the admin: list, one revision, and the ways to make the next."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from intraskill_web.configs.models import ConfigRevision, ConfigUse
from intraskill_web.core.admin_base import ReadOnlyAdmin


@admin.register(ConfigRevision)
class ConfigRevisionAdmin(ReadOnlyAdmin):
    """Adding makes a new revision; nothing is ever changed, and what was used stays."""

    list_display = [
        "name",
        "reason_line",
        "author",
        "created_at",
        "rounds",
        "state",
        "sha256_short",
    ]
    list_filter = ["kind", "author", "created_at"]
    list_select_related = ["author"]
    search_fields = ["reason", "text", "=sha256", "uses__experiment__name"]
    ordering = ["-created_at", "-id"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        counted: QuerySet[Any] = rows.annotate(used=Count("uses", distinct=True))
        return counted

    @admin.display(description=gettext_lazy("Revision"), ordering="number")
    def name(self, item: ConfigRevision) -> str:
        return str(item)

    @admin.display(description=gettext_lazy("Reason"))
    def reason_line(self, item: ConfigRevision) -> str:
        return item.why if len(item.why) <= 80 else item.why[:79] + "…"

    @admin.display(description=gettext_lazy("Experiments"), ordering="used")
    def rounds(self, item: Any) -> int:
        return int(item.used)

    @admin.display(description=gettext_lazy("State"))
    def state(self, item: Any) -> SafeString | str:
        if item.used:
            return format_html("<b>{}</b>", _("locked"))
        return _("unused")

    @admin.display(description="SHA-256")
    def sha256_short(self, item: ConfigRevision) -> str:
        return item.sha256[:8]

    def has_add_permission(self, request: HttpRequest, *_args: Any) -> bool:
        return bool(request.user.has_perm("configs.add_configrevision"))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if obj is not None and obj.uses.exists():
            return False
        return bool(request.user.has_perm("configs.delete_configrevision"))

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)  # one at a time, so that a lock is seen
        return actions

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path("check/", view(self.check_view), name="configs_check"),
            path("<int:pk>/yaml/", view(self.yaml_view), name="configs_yaml"),
            path("<int:pk>/launch/", view(self.launch_view), name="configs_launch"),
        ]
        return [*own, *super().get_urls()]

    def add_view(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        return _answer("add", self, request)

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_kwargs: Any
    ) -> HttpResponse:
        return _answer("show", self, request, object_id)

    def check_view(self, request: HttpRequest) -> HttpResponse:
        return _answer("live", self, request)

    def yaml_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        return _answer("download", self, request, pk)

    def launch_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        return _answer("start", self, request, pk)


def _answer(view: str, *arguments: object) -> HttpResponse:
    """What a view answers; views are read when one is asked for. Every process of the product reads
    this module, and they bring the gate's library and all forms, a second of work."""
    pages = import_module("intraskill_web.configs.admin_views")
    answer: HttpResponse = getattr(pages, view)(*arguments)
    return answer


@admin.register(ConfigUse)
class ConfigUseAdmin(ReadOnlyAdmin):
    list_display = ["revision", "experiment"]
    list_filter = ["revision__kind"]
    list_select_related = ["revision", "experiment"]
    search_fields = ["experiment__name"]
