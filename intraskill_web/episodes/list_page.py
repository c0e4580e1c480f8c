"""The episode list: what it shows, built once for the page, its JSON and its CSV."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from intraskill_web.core import formats, labels
from intraskill_web.core.tables import Column, Table
from intraskill_web.core.templatetags.intraskill import lang
from intraskill_web.episodes.endings import Ending, ending, ending_badge
from intraskill_web.episodes.facets import FacetBar, fields, found_facets
from intraskill_web.episodes.filters import Chip, EpisodeFilter
from intraskill_web.episodes.limits import TooSlow, limited
from intraskill_web.episodes.listing import FACET_LIMIT, Counted, ListPage, counted, list_page
from intraskill_web.episodes.models import Episode, SavedSearch
from intraskill_web.episodes.order import COLUMNS, Key, Order
from intraskill_web.episodes.words import Hit
from intraskill_web.experiments.models import Experiment

LIST_FIELDS = (
    "id", "episode_id", "purpose", "arm", "step", "group_index", "sample_id", "task_id", "split",
    "treatment_mode", "skill_ids", "reward", "success", "scored", "outcome", "termination",
    "turns", "tokens", "invalid_actions", "protocol_errors", "advantage", "admitted", "triage",
    "category", "checkpoint", "instruction",
)  # fmt: skip
COSTLY_SECONDS = 0.2
TITLE = 90  # characters
SPEAKERS: labels.Words = {
    "id": gettext_lazy("id"), "task": gettext_lazy("task"), "persona": gettext_lazy("persona"),
    "thinking": gettext_lazy("thinking"), "agent": gettext_lazy("agent"),
    "call": gettext_lazy("call"), "shop": gettext_lazy("shop"), "error": gettext_lazy("error"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the list, in words. Made here and not in the template: a page has fifty."""

    pk: int
    badge: SafeString
    address: str
    title: str
    language: SafeString
    episode_id: str
    hit: Hit | None
    who: str
    treatment: str
    chunks: str
    reward: str
    advantage: str
    turns: int
    tokens: str
    termination: str
    where: str
    which: str


@dataclass(frozen=True, slots=True)
class Head:
    """A column's head: how it is ordered now, and the query that a click asks for."""

    label: str
    sort: str
    address: str


@dataclass(frozen=True)
class EpisodeList:
    """A list as one address asks for it."""

    filter: EpisodeFilter
    order: Order
    page: ListPage
    counted: Counted

    @classmethod
    def of(cls, query: QueryDict) -> EpisodeList:
        """What an address asks for. Two queries, more while looking through texts."""
        filter_, order = EpisodeFilter.of(query), Order.of(query.get("sort", ""))
        if filter_.words:
            order = Order()  # hits are looked for newest first
        before, after = (Key.of(query.get(name, "")) for name in ("before", "after"))
        listed = list_page(filter_, order, before=before, after=after)
        counting = counted(filter_)
        if filter_.words and not (before or after or listed.older):
            counting = replace(
                counting, count=len(listed.rows), capped=False, certain=True, known=True
            )
        return cls(filter_, order, listed, counting)

    @cached_property
    def home(self) -> str:
        """The address of the list, which every episode's begins with."""
        return reverse("episodes:list")

    @cached_property
    def query(self) -> str:
        """The query string of filter and order, without the page."""
        parts = [
            self.filter.query(),
            urlencode({"sort": str(self.order)}) if self.order.column else "",
        ]
        return "&".join(part for part in parts if part)

    def context(self, user: Any) -> dict[str, Any]:
        """What the page shows; two queries more (experiments, saved searches)."""
        names = list(Experiment.objects.order_by("-id").values_list("name", flat=True)[:50])
        chips = list(self.filter.chips())
        empty = not self.counted.count and not self.page.rows and not self.filter.errors
        badges: dict[Ending, SafeString] = {}
        bars: list[FacetBar] = found_facets(self.filter, self.counted.facets)
        return {
            "section": "episodes",
            "filter": self.filter,
            "chips": chips,
            "query": self.query,
            "listed": self.page,
            "counted": self.counted,
            "rows": [self._row(episode, badges) for episode in self.page.rows],
            "facets": fields(self.filter, names),
            "facet_limit": FACET_LIMIT,
            "bars": bars,
            "follow": self._newest(),
            "heads": {name: self._head(name) for name in COLUMNS},
            "search_text": self.filter.values.get("q", ""),
            "export_kinds": ("csv", "jsonl", "parquet"),
            "saved": list(SavedSearch.objects.filter(owner=user)),
            "crumbs": [(_("Episodes"), "")],
            "costly": costliest(self.filter, chips) if empty else None,
        }

    def data(self) -> dict[str, Any]:
        """The same facts as data."""
        return {
            "filter": dict(self.filter.values),
            "sort": str(self.order),
            "errors": self.filter.errors,
            "total": self.counted.count,
            "more": self.counted.capped,
            "total_is_certain": self.counted.certain and self.counted.known,
            "facets": {name: dict(_keyed(c)) for name, c in self.counted.facets.items()},
            "older": str(self.page.older) if self.page.older else None,
            "newer": str(self.page.newer) if self.page.newer else None,
            "stopped": self.page.stopped,
            "results": [self._result(episode) for episode in self.page.rows],
        }

    def table(self) -> Table:
        """The page as a table for CSV."""
        return table([episode_data(episode) for episode in self.page.rows])

    def _result(self, episode: Episode) -> dict[str, Any]:
        hit = self.page.hits.get(episode.pk)
        found = {"turn": hit.turn, "role": hit.role, "before": hit.before, "match": hit.match,
                 "after": hit.after} if hit else None  # fmt: skip
        return episode_data(episode) | {"hit": found}

    def _row(self, episode: Episode, badges: dict[Ending, SafeString]) -> Row:
        hit = self.page.hits.get(episode.pk)
        address = self._address(episode.pk)
        end, title = ending(episode), episode.instruction or episode.episode_id
        if end not in badges:
            badges[end] = ending_badge(end)
        n = episode.skill_count
        return Row(
            pk=episode.pk,
            badge=badges[end],
            address=address + (f"#t{hit.turn}" if hit else ""),
            title=title if len(title) <= TITLE else title[: TITLE - 1] + "…",
            language=lang(title),
            episode_id=episode.episode_id,
            hit=hit,
            who=_who(hit) if hit else "",
            treatment=labels.word(labels.TREATMENTS, episode.treatment_mode),
            chunks=ngettext("%(n)s chunk", "%(n)s chunks", n) % {"n": n},
            reward=formats.rate(episode.reward),
            advantage=formats.effect(episode.advantage, 2),
            turns=episode.turns,
            tokens=formats.count(episode.tokens),
            termination=labels.word(labels.TERMINATIONS, episode.termination) or formats.UNKNOWN,
            where=_where(episode),
            which=_which(episode),
        )

    def _newest(self) -> int | None:
        """The id behind which newer episodes are offered: on the first page of newest first."""
        if self.page.newer is not None or self.order.column or not self.page.rows:
            return None
        return self.page.rows[0].pk

    def _address(self, pk: int) -> str:
        """The page of an episode in this list."""
        return f"{self.home}{pk}/" + (f"?{self.query}" if self.query else "")

    def _head(self, name: str) -> Head:
        sort = "none"
        if self.order.column == name:
            sort = "ascending" if self.order.ascending else "descending"
        parts = [
            self.filter.query(),
            urlencode({"sort": s}) if (s := self.order.other(name)) else "",
        ]
        return Head(str(COLUMNS[name]), sort, "&".join(part for part in parts if part))


def episode_data(episode: Episode) -> dict[str, Any]:
    """A row for JSON and CSV."""
    values = {name: getattr(episode, name) for name in LIST_FIELDS}
    return values | {
        "experiment": episode.experiment.name,
        "round": episode.round.number if episode.round else None,
        "url": reverse("episodes:detail", args=[episode.pk]),
    }


def columns() -> list[str]:
    """The columns of CSV and Parquet."""
    return ["experiment", "round", *LIST_FIELDS, "url"]


def table(rows: list[dict[str, Any]]) -> Table:
    """Rows as a table, lists as words."""
    flat = [row | {"skill_ids": " ".join(map(str, row["skill_ids"]))} for row in rows]
    return Table("episodes", [Column(name, name) for name in columns()], flat)


def costliest(filter_: EpisodeFilter, chips: list[Chip]) -> tuple[Chip, int] | None:
    """The filter whose removal brings back most episodes, when nothing matches."""
    best: tuple[Chip, int] | None = None
    for chip in chips[:4]:
        rows = filter_.apply(Episode.objects.all(), leave_out=chip.key).order_by()
        try:
            with limited(COSTLY_SECONDS):
                n = rows[:10_001].count()
        except TooSlow:
            continue
        if n and (best is None or n > best[1]):
            best = (chip, n)
    return best


def _who(hit: Hit) -> str:
    """Turn and speaker of a hit."""
    if not hit.turn:
        return speaker(hit.role)
    return _("turn %(n)s, %(who)s") % {"n": hit.turn, "who": speaker(hit.role)}


def _where(episode: Episode) -> str:
    name = episode.experiment.name
    if episode.round is None:
        return name
    return _("%(name)s, round %(n)s") % {"name": name, "n": episode.round.number}


def _which(episode: Episode) -> str:
    if episode.step is None:
        return labels.word(labels.PURPOSES, episode.purpose)
    return _("step %(step)s, group %(group)s") % {
        "step": episode.step,
        "group": episode.group_index,
    }


def speaker(role: str) -> str:
    """Who said it, in a word."""
    return labels.word(SPEAKERS, role)


def _keyed(values: Any) -> list[tuple[str, int]]:
    return [("" if value is None else str(value), n) for value, n in values.most_common()]
