"""The filter of the episode list: its whole state is the URL, and every part is a chip.

A parameter that cannot be understood is an error shown beside the list, never a silent "all".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.db.models import CharField, QuerySet
from django.db.models.functions import Cast
from django.http import QueryDict

from intraskill_web.core.parameters import unknown_experiment
from intraskill_web.episodes import postings  # noqa: F401 registers its lookup
from intraskill_web.episodes.grams import TOO_BIG
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.parameters import PARAMETERS, FilterError
from intraskill_web.episodes.terms import Terms, expression
from intraskill_web.episodes.words import Words


@dataclass(frozen=True, slots=True)
class Chip:
    """One active filter; ``without`` is the query string that drops it."""

    key: str
    name: str
    value: str
    without: str


@dataclass(frozen=True, slots=True)
class EpisodeFilter:
    """The parsed filter of one request."""

    values: Mapping[str, str]
    errors: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, query: QueryDict) -> EpisodeFilter:
        """What the URL says; unknown parameters are left alone (paging, format, language)."""
        values = {k: v.strip()[:200] for k in PARAMETERS if (v := query.get(k, "")).strip()}
        errors = []
        for key, value in values.items():
            try:
                PARAMETERS[key].parse(value)
                PARAMETERS[key].mark(value)
            except FilterError as error:
                errors.append(str(error))
        return cls(values, errors)

    def apply(
        self,
        rows: QuerySet[Episode, Any],
        *,
        leave_out: str = "",
        terms: bool = True,
        walk: bool = False,
    ) -> QuerySet[Episode, Any]:
        """``rows`` that match, and of the text those that may match.

        Nothing at all when a parameter is not understood. Without ``terms`` the index is not asked;
        with ``walk`` SQLite looks for no range in an index.
        """
        if self.errors:
            return rows.none()
        wanted = {k: v for k, v in self.values.items() if k != leave_out}
        if "without" in wanted:
            rows = rows.alias(skill_text=Cast("skill_ids", CharField()))
        for key, value in wanted.items():
            if condition := PARAMETERS[key].parse(value, walk=walk):
                rows = rows.filter(condition)
        asked = self.terms(leave_out=leave_out)
        return _having(rows, asked) if terms and asked else rows

    def beyond_index(self, rows: QuerySet[Episode, Any]) -> QuerySet[Episode, Any]:
        """Those of ``rows`` that match but for the text, and are too large to be indexed by it."""
        asked = Terms(marks=(TOO_BIG, *self.terms().marks))
        return _having(self.apply(rows, terms=False), asked)

    def terms(self, *, leave_out: str = "") -> Terms:
        """One question to the index: FTS5 answers no second one in the same statement."""
        asked = Terms()
        for key, value in self.values.items():
            if key != leave_out:
                asked += PARAMETERS[key].mark(value)
        return asked

    def refuse_unknown(self) -> None:
        """For a list that is empty: an experiment that does not exist is an error too.

        Asked only then, because it costs a query.
        """
        if not self.errors and (problem := unknown_experiment(self.values.get("experiment", ""))):
            self.errors.append(f"{PARAMETERS['experiment'].name}: {problem}")

    def refusal(self) -> dict[str, Any]:
        """The keys by which JSON says that the filter was not understood; none where it was."""
        return {"ok": False, "error": "; ".join(self.errors)} if self.errors else {}

    @property
    def has_ranges(self) -> bool:
        """Whether a value is a range of a column."""
        return any(PARAMETERS[key].walk is not None for key in self.values)

    @property
    def words(self) -> Words:
        """The words of the text; episodes are looked through for them after the index."""
        return Words.of(self.values.get("q", ""))

    def query(self, *, drop: str = "") -> str:
        """The query string of this filter, in a fixed order."""
        query = QueryDict(mutable=True)
        for key, value in self.values.items():
            if key != drop:
                query[key] = value
        return query.urlencode()

    def chips(self) -> Iterator[Chip]:
        """One chip a value, in the order of the parameters."""
        for key, value in self.values.items():
            parameter = PARAMETERS[key]
            yield Chip(key, str(parameter.name), parameter.show(value), self.query(drop=key))


def _having(rows: QuerySet[Episode, Any], asked: Terms) -> QuerySet[Episode, Any]:
    if connection.vendor == "postgresql":
        return rows.filter(pk__has_postings=asked)
    return rows.filter(search__terms__has_terms=expression(asked))
