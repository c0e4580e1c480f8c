"""Template tags of all pages: icons, badges, numbers, definitions, fragments."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from typing import Any

from django import template
from django.template.base import FilterExpression, NodeList, Parser, Token
from django.template.context import Context
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from intraskill_web.charts import rows
from intraskill_web.core import access, formats
from intraskill_web.core.definitions import definitions
from intraskill_web.core.labels import (
    CHANGES,
    OPERATIONS,
    WORKER_STATES,
    chunk_status,
    state_label,
    takes,
    word,
)
from intraskill_web.experiments.took import Took

register = template.Library()

register.filter("takes", takes)
register.filter("rate", formats.rate)
register.filter("effect", formats.effect)
register.filter("thousands", formats.count)
register.filter("percent", formats.percent)
register.filter("duration", formats.duration)
register.filter("size", formats.size)
register.filter("clock", formats.clock)
register.filter("hash8", formats.hash8)


@register.filter
def role(user: Any) -> str:
    """The reader's role, in words."""
    return {"admin": _("admin"), "operator": _("operator")}.get(access.role(user), _("viewer"))


@register.filter
def interval(value: Any, places: int = 3) -> str:
    """The interval of anything with ``low`` and ``high``, or of a pair."""
    low, high = (value.low, value.high) if hasattr(value, "low") else value or (None, None)
    return formats.interval(low, high, places)


@register.filter
def rates(value: tuple[float, float] | None, places: int = 3) -> str:
    """The interval of a rate: ``[0.71, 0.78]``; empty when there is none."""
    return f"[{value[0]:.{places}f}, {value[1]:.{places}f}]" if value else ""


@register.filter
def change_word(change: str) -> str:
    """What became of a chunk between two versions, in a word."""
    return word(CHANGES, change)


@register.filter
def worker_state(state: str) -> str:
    """What a worker does, in a word."""
    return word(WORKER_STATES, state)


@register.filter
def money(amount: float | None, currency: str) -> str:
    """An amount with its currency."""
    return formats.money(amount, currency)


@register.filter
def operation_word(operation: str) -> str:
    """What a candidate would do, or that a chunk is a current one, in a word."""
    return word(OPERATIONS, operation.lower())


@register.filter
def lang(text: object) -> SafeString:
    """`` lang="zh-CN"`` when the text holds Chinese, for an element that shows it."""
    return mark_safe(' lang="zh-CN"' if formats.has_cjk(text) else "")


@register.simple_tag
def icon(name: str, css: str = "") -> SafeString:
    """A decorative icon of the sprite; what it says must also stand in words."""
    return format_html(
        '<svg class="i{}" aria-hidden="true"><use href="{}#{}"/></svg>',
        f" {css}" if css else "",
        static("intraskill/icons.svg"),
        name,
    )


@register.simple_tag
def badge(state: str) -> SafeString:
    """Shape, word and colour of a stage's, attempt's or round's state; empty is "not started"."""
    name = state or "none"
    return format_html('<span class="badge s-{}">{}{}</span>', name, icon(name), state_label(state))


@register.simple_tag
def status(name: str) -> SafeString:
    """A chunk's status: shape and word."""
    return format_html(
        '<span class="st {}">{}{}</span>', name, rows.status_shape(name), chunk_status(name)
    )


@register.simple_tag
def help(key: str) -> SafeString:
    """The ``?`` beside a number, to its definition."""
    entry = definitions()[key]
    return format_html(
        '<a class="q" href="{}" aria-label="{}" title="{}">?</a>',
        reverse("core:definition", args=[key]),
        _("Definition: %(title)s") % {"title": entry.title},
        entry.text,
    )


@register.simple_tag
def ago(moment: datetime | None) -> SafeString | str:
    """How long ago, kept true by the page's script."""
    if moment is None:
        return formats.UNKNOWN
    return format_html(
        '<time data-ago datetime="{}">{}</time>', moment.isoformat(), formats.ago(moment)
    )


@register.simple_tag
def elapsed(start: datetime | None, end: datetime | None) -> SafeString | str:
    """How long something took, or takes until now; the page's script keeps the latter true."""
    if start is None:
        return formats.UNKNOWN
    text = formats.duration(((end or timezone.now()) - start).total_seconds())
    if end is not None:
        return text
    return format_html('<time data-since datetime="{}">{}</time>', start.isoformat(), text)


@register.simple_tag
def took(value: Took) -> SafeString | str:
    """How long something was worked on; the page's script keeps it true while it is."""
    text = formats.duration(value.worked)
    if value.since is None:
        return text
    return format_html('<time data-since datetime="{}">{}</time>', value.since.isoformat(), text)


@register.simple_tag
def clock_words() -> SafeString:
    """The wording of ``ago`` and ``elapsed`` for the page's script, as data attributes."""
    words = [(f"ago-{unit}", text) for unit, text in formats.agos().items()]
    words += [(f"span-{unit}", text) for unit, text in formats.spans().items()]
    return format_html_join(" ", 'data-{}="{}"', words)


@register.simple_tag
def hashed(value: str | None, href: str = "") -> SafeString | str:
    """The first eight digits of a hash, the whole in the title; copied on click, or a link."""
    if not value:
        return formats.UNKNOWN
    if href:
        return format_html(
            '<a class="mono" href="{}" title="{}">{}</a>', href, value, formats.hash8(value)
        )
    return format_html('<span class="mono" title="{}">{}</span>', value, formats.hash8(value))


@register.simple_tag
def number(text: str, href: str | None = None, title: str = "") -> SafeString:
    """A number that opens the episodes it counts; plain where there are none."""
    if not href or text == formats.UNKNOWN:
        return format_html("{}", text)
    return format_html(
        '<a class="n" href="{}"{}>{}</a>',
        href,
        format_html(' title="{}"', title) if title else "",
        text,
    )


@register.simple_tag(takes_context=True)
def nav_link(context: Context, view: str, section: str, label: str) -> SafeString:
    """A link of the main navigation, marked when it leads to the section one is in."""
    here = mark_safe(' aria-current="page"' if context.get("section") == section else "")
    return format_html('<a href="{}"{}>{}</a>', reverse(view), here, label)


@register.simple_tag
def scripts(*names: str) -> SafeString:
    """Module scripts under ``static/intraskill/js``."""
    return format_html_join(
        "\n",
        '<script type="module" src="{}"></script>',
        ((static(f"intraskill/js/{name}.js"),) for name in names),
    )


# What changes at every rendering without being news: form tokens and the text of a running clock.
NOISE = re.compile(r'name="csrfmiddlewaretoken" value="[^"]*"|(?<=">)[^<]*(?=</time>)')


class FragmentNode(template.Node):
    """See ``fragment``."""

    def __init__(self, arguments: list[FilterExpression], body: NodeList) -> None:
        self.arguments = arguments
        self.nodelist = body

    def render(self, context: Context) -> SafeString:
        values = [argument.resolve(context) for argument in self.arguments]
        body = self.nodelist.render(context)
        state = str(values[2]) if len(values) > 2 else NOISE.sub("", body)
        return format_html(
            '<div id="{}"{} class="{}" data-token="{}">{}</div>',
            values[0],
            mark_safe(' hx-swap-oob="outerHTML"' if context.get("polling") else ""),
            values[1] if len(values) > 1 else "",
            hashlib.sha256(state.encode()).hexdigest()[:12],
            body,
        )


@register.tag
def fragment(parser: Parser, token: Token) -> FragmentNode:
    """``{% fragment "id" "css" state %}…{% endfragment %}``: a part that a poll may replace.

    It is replaced when its text changed or, with ``state``, when that did.
    """
    arguments = [parser.compile_filter(bit) for bit in token.split_contents()[1:]]
    if not 1 <= len(arguments) <= 3:
        raise template.TemplateSyntaxError("fragment takes an id, CSS classes and a state")
    body = parser.parse(("endfragment",))
    parser.delete_first_token()
    return FragmentNode(arguments, body)
