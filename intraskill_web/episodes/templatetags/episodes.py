"""What tells an episode from those beside it, and what a behaviour metric counts, in words."""

from __future__ import annotations

from django import template
from django.utils.translation import gettext as _

from intraskill_web.core import formats
from intraskill_web.core.labels import TREATMENTS, word
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.replay_words import original_word

register = template.Library()

register.filter("weights", original_word)


@register.filter
def beside(episode: Episode) -> str:
    """An episode among its siblings or arms: its number, its arm, or that it is the retry."""
    if episode.purpose == "retry":
        return _("retry")
    if episode.group_index is not None:
        return formats.count(episode.sample_id)
    arm = word(TREATMENTS, episode.arm)
    return _("start, %(arm)s") % {"arm": arm} if episode.purpose == "baseline" else arm
