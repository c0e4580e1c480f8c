"""Saved searches: a person's filters under names."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from intraskill_web.episodes.filters import EpisodeFilter
from intraskill_web.episodes.models import SavedSearch
from intraskill_web.episodes.order import Order


@require_POST
def save(request: HttpRequest) -> HttpResponse:
    """Keep the filter under a name; the same name again takes the new filter."""
    name, query = request.POST.get("name", "").strip()[:80], _clean(request.POST.get("query", ""))
    if not name or not query:
        messages.error(request, _("A saved search needs a name and a filter."))
        return _back(query)
    SavedSearch.objects.update_or_create(
        owner_id=request.user.pk, name=name, defaults={"query": query[:2000]}
    )
    messages.success(request, _("Saved as “%(name)s”.") % {"name": name})
    return _back(query)


@require_POST
def forget(request: HttpRequest, pk: int) -> HttpResponse:
    """Drop one of one's own searches."""
    get_object_or_404(SavedSearch, pk=pk, owner=request.user).delete()
    return _back(_clean(request.POST.get("query", "")))


def _clean(query: str) -> str:
    """Filter and order of a query string; whatever else it carries is dropped."""
    parsed = QueryDict(query[:4000])
    filter_, order = EpisodeFilter.of(parsed), Order.of(parsed.get("sort", ""))
    parts = [filter_.query(), f"sort={order}" if order.column else ""]
    return "&".join(part for part in parts if part)


def _back(query: str) -> HttpResponse:
    return redirect(reverse("episodes:list") + (f"?{query}" if query else ""))
