"""Words and look-ups of failure cards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import template

from intraskill_web.core import formats
from intraskill_web.core.labels import TRIGGERS, word
from intraskill_web.ledger.cards import STATUSES

register = template.Library()


@register.filter
def card_status(status: str) -> str:
    """What a card proposes, in words."""
    return word(STATUSES, status)


@register.filter
def by_trigger(triggers: Mapping[str, int]) -> str:
    """Why groups were analysed, and how many: ``retry failed too 2, rarely succeeded 11``."""
    known = list(TRIGGERS)  # in their order: PostgreSQL keeps none in its JSON
    order = sorted(triggers, key=lambda t: (known.index(t) if t in known else len(known), t))
    return ", ".join(f"{word(TRIGGERS, t)} {formats.count(triggers[t])}" for t in order)


@register.filter
def of_card(used: Mapping[str, Any], card_id: str) -> Any:
    """The candidates compiled from a card."""
    return used.get(card_id, [])
