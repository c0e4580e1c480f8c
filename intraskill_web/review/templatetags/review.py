"""Words of reviews."""

from __future__ import annotations

from django import template

from intraskill_web.core.labels import word
from intraskill_web.review.state import LABELS

register = template.Library()


@register.filter
def review_label(name: str) -> str:
    """A label in the reader's words; one of people's own stays as it is."""
    return word(LABELS, name)
