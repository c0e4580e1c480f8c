"""The inbox: every signal, newest first; what is unread; marking as read."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from intraskill_web.core.back import way_back
from intraskill_web.core.parameters import choice, whole
from intraskill_web.core.twin import page
from intraskill_web.monitoring.models import SignalEvent
from intraskill_web.monitoring.notify.message import words_of
from intraskill_web.monitoring.signals.inbox import for_reader, mark_read, unread

PAGE = 50
SHOWS = ("unread", "open", "all")


@require_safe
def inbox(request: HttpRequest) -> HttpResponse:
    """Signals by ``?show=unread|open|all``, 50 a page, older ones by ``?before=<id>``."""
    user: Any = request.user
    show = choice(request.GET, "show", SHOWS, "unread")
    events = unread(user) if show == "unread" else for_reader(user)
    if show == "open":
        events = events.filter(closed_at=None)
    if (before := whole(request.GET, "before", None)) is not None:
        events = events.filter(pk__lt=before)
    listed = list(events.select_related("round__experiment").order_by("-id")[: PAGE + 1])
    rows = [{"event": event, "words": words_of(event)} for event in listed[:PAGE]]
    older = ""
    if len(listed) > PAGE:
        older = "?" + urlencode({"show": show, "before": listed[PAGE - 1].pk})
    labels = {"unread": _("Unread"), "open": _("Open"), "all": _("All")}
    context = {
        "section": "inbox",
        "rows": rows,
        "show": show,
        "shows": [(key, labels[key]) for key in SHOWS],
        "older": older,
        "ids": ",".join(
            str(event.pk) for event in listed[:PAGE] if not getattr(event, "seen", False)
        ),
    }
    return page(
        request,
        "monitoring/inbox.html",
        context,
        lambda: {"signals": [event_data(event) for event in listed[:PAGE]]},
    )


def event_data(event: SignalEvent) -> dict[str, Any]:
    """A signal for JSON."""
    said = words_of(event)
    return {
        "id": event.pk,
        "kind": event.kind,
        "subject": event.subject,
        "level": event.level,
        "experiment": event.round.experiment.name,
        "round": event.round.number,
        "title": said.title,
        "detail": said.detail,
        "facts": event.facts,
        "opened_at": event.opened_at,
        "closed_at": event.closed_at,
        "read": getattr(event, "seen", None),
        "href": said.href,
    }


@require_POST
def read(request: HttpRequest) -> HttpResponse:
    """Mark the signals ``id`` (numbers, comma-separated) as read by who asks; then go back."""
    wanted = [whole({"id": part}, "id") for part in request.POST.get("id", "").split(",")]
    known = SignalEvent.objects.filter(pk__in=wanted[:1000]).values_list("pk", flat=True)
    mark_read(request.user, known)
    return redirect(way_back(request, reverse("monitoring:inbox")))
