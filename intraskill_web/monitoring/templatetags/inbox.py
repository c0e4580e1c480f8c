"""The bell in the header of every page."""

from __future__ import annotations

from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from intraskill_web.core.templatetags.intraskill import icon
from intraskill_web.monitoring.signals.inbox import MANY, unread_count

register = template.Library()


@register.simple_tag
def bell(user: Any) -> SafeString:
    """The way to the inbox, with the number of unread signals."""
    n = unread_count(user)
    shown = f"{MANY - 1}+" if n >= MANY else str(n)
    label = ngettext("Inbox, %(n)s unread", "Inbox, %(n)s unread", n) % {"n": shown}
    return format_html(
        '<a class="btn quiet ico bell" href="{}" aria-label="{}">{}{}</a>',
        reverse("monitoring:inbox"),
        label if n else _("Inbox"),
        icon("bell"),
        format_html("<b>{}</b>", shown) if n else "",
    )
