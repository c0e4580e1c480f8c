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
from intraskill_web.monitoring.bell import shown
from intraskill_web.monitoring.signals.inbox import unread_count

register = template.Library()


@register.simple_tag
def bell(user: Any) -> SafeString:
    """The way to the inbox, with the number of unread signals."""
    n = unread_count(user)
    words = ngettext("Inbox, %(n)s unread", "Inbox, %(n)s unread", n) % {"n": "#"}
    number, none = shown(n), _("Inbox")
    return format_html(
        '<a class="btn quiet ico bell" href="{}" aria-label="{}" data-bell="{}" data-words="{}" '
        'data-none="{}" data-ask="{}">{}{}</a>',
        reverse("monitoring:inbox"),
        words.replace("#", number) if n else none,
        number,
        words,
        none,
        reverse("monitoring:unread"),
        icon("bell"),
        format_html("<b>{}</b>", number) if n else "",
    )
