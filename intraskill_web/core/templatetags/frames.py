"""The frame of a card that shows one table: header, table or what to say without, footer."""

from __future__ import annotations

from typing import Any

from django import template
from django.template.base import FilterExpression, NodeList, Parser, Token, token_kwargs
from django.template.context import Context
from django.utils.safestring import SafeString, mark_safe

register = template.Library()

OPTIONS = {"id", "title", "css", "help", "rows", "table", "empty", "empty_title"}


class CardNode(template.Node):
    """See ``card``."""

    child_nodelists = ("head", "body", "foot")

    def __init__(
        self,
        options: dict[str, FilterExpression],
        head: NodeList,
        body: NodeList,
        foot: NodeList,
    ) -> None:
        self.options = options
        self.head = head
        self.body = body
        self.foot = foot

    def render(self, context: Context) -> SafeString:
        said: dict[str, Any] = {k: option.resolve(context) for k, option in self.options.items()}
        said["rows"] = bool(said.get("rows", True))
        said["head"] = self.head.render(context)
        said["body"] = self.body.render(context) if said["rows"] else ""
        said["foot"] = mark_safe(self.foot.render(context).strip())  # of rendered templates
        frame = context.template.engine.get_template("core/_card.html")  # type: ignore[union-attr]
        return frame.render(context.new(said))


@register.tag
def card(parser: Parser, token: Token) -> CardNode:
    """``{% card id="x" title=_("…") rows=rows empty=_("…") %}``, head, ``{% rows %}``, table
    content, ``{% foot %}``, footer, ``{% endcard %}``.

    The head (what stands beside the title) and the footer may be left out; without ``id`` the card
    has no header and its title is its label. ``help`` is the key of a definition, ``table`` the
    table's class, ``css`` that of the card. Without rows the card says ``empty`` under
    ``empty_title``; a footer stays.
    """
    bits = token.split_contents()[1:]
    options = token_kwargs(bits, parser)
    if bits or not {"title"} <= options.keys() <= OPTIONS:
        raise template.TemplateSyntaxError(
            f"card takes title=… and any of {', '.join(sorted(OPTIONS - {'title'}))}"
        )
    parts = {"head": NodeList(), "rows": NodeList(), "foot": NodeList()}
    part = "head"
    while part != "endcard":
        parts[part] = parser.parse(("rows", "foot", "endcard"))
        part = parser.next_token().contents
    return CardNode(options, parts["head"], parts["rows"], parts["foot"])
