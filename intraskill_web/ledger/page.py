"""The ledger page: candidates with their chain, and the funnel of each round.

The chain of a candidate is cards → operation on a chunk → column of the gate → verdict → version.
The counts of the funnel are filters of the same list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, Q, QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _

from intraskill_web.core.parameters import choice, experiment_in, whole
from intraskill_web.core.tables import Column, Table
from intraskill_web.experiments.models import Stage
from intraskill_web.gates.models import KEPT
from intraskill_web.ledger.models import Candidate
from intraskill_web.ledger.near import nearest

PAGE = 50
UNJUDGED = ("", "pooled")
OPERATIONS = ("ADD", "REWRITE")
REACHED: Mapping[str, Q] = {
    "compiled": Q(),
    "judged": ~Q(status__in=UNJUDGED),
    "selected": Q(status__in=KEPT),
}


@dataclass(frozen=True, slots=True)
class Filters:
    """What the address asks for."""

    experiment: str = ""
    round: int | None = None
    operation: str = ""
    reached: str = ""
    q: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Filters:
        """The filters of a query string. Raises ParameterError for what is unknown."""
        return cls(
            experiment=experiment_in(query),
            round=whole(query, "round", None),
            operation=choice(query, "operation", OPERATIONS),
            reached=choice(query, "reached", REACHED),
            q=query.get("q", "").strip()[:200],
        )

    def url(self, **changes: object) -> str:
        """The address with some filters changed; empty ones are left out."""
        values = {
            "experiment": self.experiment,
            "round": self.round,
            "operation": self.operation,
            "reached": self.reached,
            "q": self.q,
        } | changes
        query = urlencode({k: v for k, v in values.items() if v not in ("", None)})
        return reverse("ledger:list") + (f"?{query}" if query else "")

    def rows(self) -> QuerySet[Candidate]:
        """The candidates, newest round first."""
        found = Candidate.objects.select_related("experiment", "round")
        if self.experiment:
            found = found.filter(experiment__name=self.experiment)
        if self.round is not None:
            found = found.filter(round__number=self.round)
        if self.operation:
            found = found.filter(operation=self.operation)
        if self.reached:
            found = found.filter(REACHED[self.reached])
        for word in self.q.split():
            found = found.filter(
                Q(title__icontains=word)
                | Q(content__icontains=word)
                | Q(candidate_id__icontains=word)
                | Q(target_chunk_id__icontains=word)
            )
        return found.order_by("-experiment_id", "-round__number", "rank", "candidate_id")


@dataclass(frozen=True, slots=True)
class Entry:
    """One candidate with where its chain leads."""

    item: Candidate
    gate_href: str
    version_href: str
    near: Candidate | None
    likeness: float

    @property
    def cards(self) -> int:
        """How many failure cards it was compiled from."""
        return len(self.item.source_card_ids)


@dataclass(frozen=True, slots=True)
class Funnel:
    """The counts of one round. Cards are None where the analysis is not on record."""

    experiment: str
    round: int
    cards: int | None
    eligible: int | None
    counts: Mapping[str, int]
    hrefs: Mapping[str, str]
    here: bool


def entries(rows: Sequence[Candidate]) -> list[Entry]:
    """Rows of one page; near duplicates are looked for in the experiments on it."""
    others = Candidate.objects.filter(
        experiment__in={row.experiment_id for row in rows}
    ).select_related("round")[:500]
    texts: dict[int, dict[int, str]] = {}
    known = {other.pk: other for other in (*others, *rows)}
    for other in known.values():
        texts.setdefault(other.experiment_id, {})[other.pk] = other.content
    close: dict[int, tuple[int, float]] = {}
    for group in texts.values():
        close |= nearest(group)
    return [_entry(row, known, close.get(row.pk)) for row in rows]


def _entry(row: Candidate, known: Mapping[int, Candidate], near: tuple[int, float] | None) -> Entry:
    name, number = row.experiment.name, row.round.number
    judged, kept = row.status not in UNJUDGED, row.status in KEPT
    return Entry(
        item=row,
        gate_href=reverse("gates:detail", args=[name, number]) if judged else "",
        version_href=reverse("skills:version", args=[name, number + 1]) if kept else "",
        near=known[near[0]] if near else None,
        likeness=near[1] if near else 0.0,
    )


def funnels(filters: Filters) -> list[Funnel]:
    """A funnel a round, of the experiment asked for or of all: two queries."""
    rows = Candidate.objects.all()
    stages = Stage.objects.filter(kind="analyse")
    if filters.experiment:
        rows = rows.filter(experiment__name=filters.experiment)
        stages = stages.filter(round__experiment__name=filters.experiment)
    outcomes = dict(stages.values_list("round_id", "outcome"))
    counted = (
        rows.values("round_id", "round__number", "experiment__name", "experiment_id")
        .annotate(
            compiled=Count("id"),
            judged=Count("id", filter=REACHED["judged"]),
            selected=Count("id", filter=REACHED["selected"]),
        )
        .order_by("-experiment_id", "round__number")
    )
    return [_funnel(line, outcomes.get(line["round_id"]) or {}, filters) for line in counted[:40]]


def _funnel(line: Mapping[str, Any], outcome: Mapping[str, Any], filters: Filters) -> Funnel:
    name, number = line["experiment__name"], line["round__number"]
    plain = Filters(experiment=name, round=number)
    return Funnel(
        experiment=name,
        round=number,
        cards=outcome.get("analyzed_cards"),
        eligible=outcome.get("eligible_cards"),
        counts={key: line[key] for key in REACHED},
        hrefs={key: plain.url(reached=key) for key in REACHED},
        here=filters.round == number and filters.experiment == name,
    )


def table(found: Sequence[Entry]) -> Table:
    """The rows as data. Failure cards are named by id only: what they hold is for the analyst."""
    columns = [
        Column("experiment", _("Experiment")),
        Column("round", _("Round"), "count"),
        Column("candidate_id", _("Candidate"), "mono"),
        Column("operation", _("Operation")),
        Column("target_chunk_id", _("Target"), "mono"),
        Column("title", _("Title")),
        Column("cards", _("Cards"), "count"),
        Column("effect", _("Effect"), "effect"),
        Column("rank", _("Rank"), "count"),
        Column("status", _("Status")),
        Column("content", _("Text")),
    ]
    return Table(
        "ledger",
        columns,
        [
            {
                "experiment": e.item.experiment.name,
                "round": e.item.round.number,
                "candidate_id": e.item.candidate_id,
                "operation": e.item.operation,
                "target_chunk_id": e.item.target_chunk_id,
                "title": e.item.title,
                "cards": e.cards,
                "effect": e.item.effect,
                "rank": e.item.rank,
                "status": e.item.status,
                "content": e.item.content,
            }
            for e in found
        ],
    )
