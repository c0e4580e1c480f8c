"""How an episode ended: technical failure, truncation, turn limit, policy failure, success."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from intraskill_web.core.templatetags.intraskill import icon
from intraskill_web.episodes.listed import Listed
from intraskill_web.episodes.models import Episode


@dataclass(frozen=True, slots=True)
class Ending:
    """The badge of an episode: a state's look and a word. Technical, truncated and policy
    differ.
    """

    state: str
    icon: str
    text: str


def ending(episode: Episode | Listed) -> Ending:
    """Technical failure, truncation, turn limit, policy failure, success: five different things."""
    if not episode.scored:
        return Ending("lost", "wrench", _("Technical failure"))
    if episode.success:
        return Ending("succeeded", "succeeded", _("Success"))
    if episode.termination == "generation_length":
        return Ending("incomplete", "cut", _("Truncated"))
    if episode.termination == "action_limit":
        return Ending("incomplete", "incomplete", _("Turn limit"))
    return Ending("failed", "failed", _("Policy failure"))


def ending_badge(end: Ending) -> SafeString:
    """The badge: shape, word and colour."""
    return format_html('<span class="badge s-{}">{}{}</span>', end.state, icon(end.icon), end.text)
