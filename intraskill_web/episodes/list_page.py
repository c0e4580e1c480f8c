"""The episode list: what it shows, built once for the page, its JSON and its CSV.

Counting costs more than a page of rows. So the page asks for its counts and facets once it is
painted, and JSON has them with ``facets=1``; a list that is whole on one page always has both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.translation import gettext as _

from intraskill_web.core.tables import Table
from intraskill_web.episodes.counting import (
    COUNT_LIMIT,
    FACET_LIMIT,
    Counted,
    counted,
    counted_rows,
)
from intraskill_web.episodes.facets import as_parameter, fields, found_facets
from intraskill_web.episodes.filters import Chip, EpisodeFilter
from intraskill_web.episodes.limits import TooSlow, limited
from intraskill_web.episodes.list_data import episode_data, hit_data, table
from intraskill_web.episodes.list_rows import Lines
from intraskill_web.episodes.listing import ListPage, list_page
from intraskill_web.episodes.models import Episode, SavedSearch
from intraskill_web.episodes.order import COLUMNS, Key, Order
from intraskill_web.experiments.models import Experiment

COSTLY_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Head:
    """A column's head: how it is ordered now, and the query that a click asks for."""

    label: str
    sort: str
    address: str


@dataclass(frozen=True)
class EpisodeList:
    """A list as one address asks for it; ``counted`` is None where counting is left for later."""

    filter: EpisodeFilter
    order: Order
    page: ListPage
    counted: Counted | None

    @classmethod
    def of(cls, query: QueryDict) -> EpisodeList:
        """What an address asks for. One query, more while looking through texts or counting."""
        filter_, order = EpisodeFilter.of(query), Order.of(query.get("sort", ""))
        before, after = (Key.of(query.get(name, "")) for name in ("before", "after"))
        filter_.errors.extend(Order.problems(query.get("sort", "")))
        for name in ("before", "after"):
            filter_.errors.extend(Key.problems(name, query.get(name, "")))
        listed = list_page(filter_, order, before=before, after=after)
        if not listed.rows:
            filter_.refuse_unknown()
        counting = None
        if listed.whole and not (before or after or listed.order.column):
            counting = counted_rows(listed.rows)
        elif query.get("facets") == "1":
            counting = counted(filter_)
        return cls(filter_, order, listed, counting)

    @cached_property
    def query(self) -> str:
        """The query string of filter and order, without the page."""
        return _joined(self._filter_query, _sort(self.order))

    @cached_property
    def _filter_query(self) -> str:
        return self.filter.query()

    @property
    def unsorted(self) -> str:
        """Why the rows are not in the order that was asked for; empty where they are."""
        if self.page.order == self.order:
            return ""
        return _("Too many hits to sort them by %(column)s in time: newest first.") % {
            "column": COLUMNS[self.order.column]
        }

    def context(self, user: Any) -> dict[str, Any]:
        """What the page shows; two queries more (experiments, saved searches)."""
        names = list(Experiment.objects.order_by("-id").values_list("name", flat=True)[:50])
        chips = list(self.filter.chips())
        empty = self.page.whole and not self.page.rows and not self.filter.errors
        lines = Lines(self.query, self.page.hits)
        return counts_context(self.filter, self.counted) | {
            "section": "episodes",
            "chips": chips,
            "query": self.query,
            "listed": self.page,
            "lines": [lines.line(episode) for episode in self.page.rows],
            "facets": fields(self.filter, names),
            "follow": self._newest(),
            "unsorted": self.unsorted,
            "heads": {name: self._head(name) for name in COLUMNS},
            "search_text": self.filter.values.get("q", ""),
            "export_kinds": ("csv", "jsonl", "parquet"),
            "saved": list(SavedSearch.objects.filter(owner=user)),
            "crumbs": [(_("Episodes"), "")],
            "costly": costliest(self.filter, chips) if empty else None,
        }

    def data(self) -> dict[str, Any]:
        """The same facts as data; what was not counted is null."""
        counting = self.counted
        return {
            "filter": dict(self.filter.values),
            "sort": str(self.page.order),
            "unsorted": self.unsorted,
            **self.filter.refusal(),
            "errors": self.filter.errors,
            "total": counting.count if counting else None,
            "more": counting.capped if counting else None,
            "total_is_certain": counting.certain and counting.known if counting else None,
            "facets": {name: _keyed(c) for name, c in counting.facets.items()}
            if counting
            else None,
            "older": str(self.page.older) if self.page.older else None,
            "newer": str(self.page.newer) if self.page.newer else None,
            "stopped": self.page.stopped,
            "results": self._results(),
        }

    def _results(self) -> list[dict[str, Any]]:
        results = list(episode_data(self.page.rows))
        for row in results:
            row["hit"] = hit_data(self.page.hits.get(row["id"]))
        return results

    def table(self) -> Table:
        """The page as a table for CSV."""
        return table(list(episode_data(self.page.rows)))

    def _newest(self) -> int | None:
        """The id behind which newer episodes are offered: on the first page of newest first."""
        if self.page.newer is not None or self.page.order.column or not self.page.rows:
            return None
        return self.page.rows[0].pk

    def _head(self, name: str) -> Head:
        sort = "none"
        if self.page.order.column == name:
            sort = "ascending" if self.order.ascending else "descending"
        address = _joined(self._filter_query, _sort(self.order.other(name)))
        return Head(str(COLUMNS[name]), sort, address)


def counts_context(filter_: EpisodeFilter, counting: Counted | None) -> dict[str, Any]:
    """What the count and the bars of facets show; both are left for later without ``counting``."""
    return {
        "filter": filter_,
        "counted": counting,
        "facet_limit": FACET_LIMIT,
        "bars": found_facets(filter_, counting.facets) if counting else [],
    }


def costliest(filter_: EpisodeFilter, chips: list[Chip]) -> tuple[Chip, Counted] | None:
    """The filter whose removal brings back most episodes, when nothing matches; how many."""
    best: tuple[Chip, int] | None = None
    for chip in chips[:4]:
        rows = filter_.apply(Episode.objects.all(), leave_out=chip.key).order_by()
        try:
            with limited(COSTLY_SECONDS):
                n = rows[: COUNT_LIMIT + 1].count()
        except TooSlow:
            continue
        if n and (best is None or n > best[1]):
            best = (chip, n)
    if best is None:
        return None
    return best[0], Counted(min(best[1], COUNT_LIMIT), best[1] > COUNT_LIMIT, {})


def _sort(order: Order | str) -> str:
    return urlencode({"sort": text}) if (text := str(order)) else ""


def _joined(*parts: str) -> str:
    return "&".join(filter(None, parts))


def _keyed(values: Any) -> dict[str, int]:
    """Counts by the value that the parameter of the same name takes; empty for none."""
    return {as_parameter(value): n for value, n in values.most_common()}
