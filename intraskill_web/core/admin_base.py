"""Admin pages show what the files say; they change nothing.

Rows mirror files and states follow rules, so an edited row would lie. Users and groups keep
Django's own pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Model

if TYPE_CHECKING:
    from django.http import HttpRequest

    BaseAdmin = admin.ModelAdmin[Model]
else:
    BaseAdmin = admin.ModelAdmin


class ReadOnlyAdmin(BaseAdmin):
    """Lists and details without add, change or delete."""

    show_full_result_count = False  # counting a million rows for a page is a waste
    list_per_page = 50
    view_on_site: Any = False  # a function of the row gives the address of its page

    def has_add_permission(self, request: HttpRequest, *_args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
