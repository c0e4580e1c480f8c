"""A line of the episode list as HTML. Made here and not in the template, in words that repeat:
a page has fifty lines of a dozen values, whose lookups took half of its time.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from intraskill_web.core import formats, labels
from intraskill_web.core.templatetags.intraskill import lang
from intraskill_web.episodes.endings import ending, ending_badge
from intraskill_web.episodes.listed import Listed
from intraskill_web.episodes.words import Hit

TITLE = 90  # characters
SPEAKERS: labels.Words = {
    "id": gettext_lazy("id"), "task": gettext_lazy("task"), "persona": gettext_lazy("persona"),
    "thinking": gettext_lazy("thinking"), "agent": gettext_lazy("agent"),
    "call": gettext_lazy("call"), "shop": gettext_lazy("shop"), "error": gettext_lazy("error"),
}  # fmt: skip
LINE = """<tr data-item data-episode="{pk}">
<td>{badge}</td>
<td><a class="nm" href="{address}"{language}>{title}</a><span class="id">{id}</span>{hit}</td>
<td class="nw">{treatment}<br> <small>{chunks}</small></td>
<td class="num">{reward}</td>
<td class="num opt3">{advantage}</td>
<td class="num">{turns}</td>
<td class="num opt3">{tokens}</td>
<td class="opt3 nw">{termination}</td>
<td class="opt2 nw"><small>{where}<br>{which}</small></td>
</tr>
"""
HIT = (
    '<span class="hitline"><span class="tag">{who}</span>'
    " <span{language}>{before}<mark>{match}</mark>{after}</span></span>"
)


class Lines:
    """The lines of one page, whose episodes open with ``query``."""

    def __init__(self, query: str, hits: Mapping[int, Hit]) -> None:
        self.query, self.hits = f"?{query}" if query else "", hits
        self._badges: dict[tuple[Any, ...], SafeString] = {}
        self._words: dict[tuple[Any, ...], str] = {}

    def line(self, episode: Listed) -> SafeString:
        """One episode. No query."""
        title = episode.instruction or episode.episode_id
        hit = self.hits.get(episode.pk)
        address = f"{self.home}{episode.pk}/{self.query}" + (f"#t{hit.turn}" if hit else "")
        treatment, chunks = self._treatment(episode)
        return mark_safe(
            LINE.format(
                pk=episode.pk,
                badge=self._badge(episode),
                address=escape(address),
                language=lang(title),
                title=escape(title if len(title) <= TITLE else title[: TITLE - 1] + "…"),
                id=escape(episode.episode_id),
                hit=_hit(hit) if hit else "",
                treatment=treatment,
                chunks=chunks,
                reward=formats.rate(episode.reward),
                advantage=formats.effect(episode.advantage, 2),
                turns=episode.turns,
                tokens=formats.count(episode.tokens),
                termination=self._termination(episode.termination),
                where=self._where(episode),
                which=_which(episode),
            )
        )

    @cached_property
    def home(self) -> str:
        """The address of the list, which every episode's begins with."""
        return reverse("episodes:list")

    def _badge(self, episode: Listed) -> SafeString:
        how = (episode.scored, episode.success, episode.termination)
        if how not in self._badges:
            self._badges[how] = ending_badge(ending(episode))
        return self._badges[how]

    def _treatment(self, episode: Listed) -> tuple[str, str]:
        mode, n = episode.treatment_mode, episode.skill_count
        return (
            self._once("treatment", mode, lambda: labels.word(labels.TREATMENTS, mode)),
            self._once("chunks", n, lambda: ngettext("%(n)s chunk", "%(n)s chunks", n) % {"n": n}),
        )

    def _termination(self, name: str) -> str:
        return self._once(
            "termination",
            name,
            lambda: labels.word(labels.TERMINATIONS, name) or formats.UNKNOWN,
        )

    def _where(self, episode: Listed) -> str:
        place = (episode.experiment, episode.round)
        return self._once("where", place, lambda: _where(episode))

    def _once(self, kind: str, value: object, make: Any) -> str:
        """The words for ``value``, escaped, made once a page."""
        found = self._words.get((kind, value))
        if found is None:
            found = self._words[kind, value] = escape(make())
        return found


def speaker(role: str) -> str:
    """Who said it, in a word."""
    return labels.word(SPEAKERS, role)


def _hit(hit: Hit) -> str:
    who = speaker(hit.role)
    if hit.turn:
        who = _("turn %(n)s, %(who)s") % {"n": hit.turn, "who": who}
    return HIT.format(
        who=escape(who),
        language=lang(hit.match),
        before=escape(hit.before),
        match=escape(hit.match),
        after=escape(hit.after),
    )


def _where(episode: Listed) -> str:
    name = episode.experiment
    if episode.round is None:
        return name
    return _("%(name)s, round %(n)s") % {"name": name, "n": episode.round}


def _which(episode: Listed) -> str:
    if episode.step is None:
        return escape(labels.word(labels.PURPOSES, episode.purpose))
    return escape(
        _("step %(step)s, group %(group)s") % {"step": episode.step, "group": episode.group_index}
    )
