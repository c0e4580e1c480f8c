"""The channels that signals are sent by: list, form, test, removal; and what became of messages."""

from __future__ import annotations

from typing import Any
from zoneinfo import available_timezones

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from intraskill_web.core import audit
from intraskill_web.core.access import actor_of, may_operate
from intraskill_web.core.roles import OPERATE
from intraskill_web.core.twin import asks_json, json_response, page
from intraskill_web.monitoring.forms import ChannelForm
from intraskill_web.monitoring.models import Channel, Delivery
from intraskill_web.monitoring.notify import outbox, signature
from intraskill_web.monitoring.notify.message import words_of
from intraskill_web.monitoring.notify.send import mail_problem

KINDS = ("email", "webhook")
NEWEST = 50


@require_safe
def channels(request: HttpRequest) -> HttpResponse:
    """All channels and the newest messages."""
    counted = Channel.objects.annotate(
        sent=Count("deliveries", filter=Q(deliveries__state="sent")),
        trouble=Count("deliveries", filter=Q(deliveries__state__in=("failed", "unsure"))),
    )
    listed = list(counted.order_by("id"))
    newest = Delivery.objects.select_related("channel", "event__round__experiment")
    sent = list(newest.order_by("-id")[:NEWEST])
    context = {
        "section": "inbox",
        "channels": listed,
        "deliveries": [(d, words_of(d.event).title.rstrip(":：") if d.event else "") for d in sent],
        "mail_problem": mail_problem(),
        "operate": may_operate(request.user),
        "crumbs": _crumbs(),
    }
    return page(
        request,
        "monitoring/channels.html",
        context,
        lambda: {
            "channels": [_channel_data(channel) for channel in listed],
            "deliveries": [_delivery_data(delivery) for delivery in sent],
        },
    )


@require_http_methods(["GET", "POST"])
@permission_required(OPERATE, raise_exception=True)
def edit(request: HttpRequest, kind: str = "", pk: int | None = None) -> HttpResponse:
    """Make a channel of ``kind``, or change channel ``pk``."""
    channel = get_object_or_404(Channel, pk=pk) if pk is not None else Channel(kind=kind)
    if channel.kind not in KINDS:
        raise Http404(kind)
    form = ChannelForm(request.POST or None, instance=channel, kind=channel.kind)
    if request.method == "POST" and form.is_valid():
        if channel.kind == "webhook" and (not channel.secret or "new_secret" in request.POST):
            channel.secret = signature.new_secret()
        saved = form.save()
        audit.record("channel.save", actor=actor_of(request), subject=str(saved)[:200])
        messages.success(request, _("Saved"))
        return redirect("monitoring:channel", pk=saved.pk)
    title = _("E-mail channel") if channel.kind == "email" else _("Webhook channel")
    context = {
        "section": "inbox",
        "form": form,
        "channel": channel,
        "title": title,
        "zones": sorted(available_timezones()) if not request.GET.get("format") else [],
        "mail_problem": mail_problem() if channel.kind == "email" else "",
        "crumbs": [*_crumbs(link=True), (title, "")],
    }
    if asks_json(request):
        return json_response(_channel_data(channel))
    bad = 422 if request.method == "POST" else 200
    return render(request, "monitoring/channel.html", context, status=bad)


@require_POST
@permission_required(OPERATE, raise_exception=True)
def test(request: HttpRequest, pk: int) -> HttpResponse:
    """Send a test message now, and say what the other side answered."""
    channel = get_object_or_404(Channel, pk=pk)
    delivery = outbox.send_test(channel)
    if delivery.state == "sent":
        messages.success(request, _("Test sent: %(answer)s") % {"answer": delivery.answer})
    else:
        messages.error(request, _("Test not sent: %(answer)s") % {"answer": delivery.answer})
    return redirect("monitoring:channels")


@require_POST
@permission_required(OPERATE, raise_exception=True)
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Forget a channel and the record of its messages."""
    channel = get_object_or_404(Channel, pk=pk)
    audit.record("channel.remove", actor=actor_of(request), subject=str(channel)[:200])
    channel.delete()
    messages.success(request, _("Removed"))
    return redirect("monitoring:channels")


@require_POST
@permission_required(OPERATE, raise_exception=True)
def again(request: HttpRequest, pk: int) -> HttpResponse:
    """Put a message that failed, or that nobody knows of, back into the outbox."""
    delivery = get_object_or_404(Delivery, pk=pk, event__isnull=False)
    if outbox.send_again(delivery):
        messages.success(request, _("It is sent again"))
    else:
        messages.error(request, _("This message is on its way already"))
    return redirect("monitoring:channels")


def _crumbs(*, link: bool = False) -> list[tuple[str, str]]:
    here = reverse("monitoring:channels") if link else ""
    return [(_("Inbox"), reverse("monitoring:inbox")), (_("Channels"), here)]


def _channel_data(channel: Channel) -> dict[str, Any]:
    """A channel for JSON; its secret stays here."""
    return {
        "id": channel.pk,
        "kind": channel.kind,
        "target": channel.target,
        "enabled": channel.enabled,
        "with_info": channel.with_info,
        "language": channel.language,
        "quiet_from": channel.quiet_from,
        "quiet_to": channel.quiet_to,
        "time_zone": channel.time_zone,
    }


def _delivery_data(delivery: Delivery) -> dict[str, Any]:
    return {
        "id": str(delivery.key),
        "channel": delivery.channel_id,
        "signal": delivery.event_id,
        "state": delivery.state,
        "tries": delivery.tries,
        "next_at": delivery.next_at,
        "done_at": delivery.done_at,
        "answer": delivery.answer,
    }
