"""The life of one chunk: what each round measured, targeted and showed, and how its text changed.

A chunk is its logical id; a rewrite keeps the id and changes the text. Observed inclusion is
counted as on the round's page: groups that showed the chunk, of all assisted groups of the round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from intraskill_web.core.tables import Column, Table
from intraskill_web.experiments.models import Experiment
from intraskill_web.gates.models import Contribution
from intraskill_web.monitoring.inclusion import InclusionRow, inclusion_rows
from intraskill_web.monitoring.models import MetricPoint
from intraskill_web.monitoring.series import PREFIX, Series
from intraskill_web.skills import diff
from intraskill_web.skills.models import ChunkRevision, Curriculum, SkillVersionChunk

COUNTS = ("group_count", "skill_free_group_rate")


@dataclass(slots=True)
class Season:
    """One round of a chunk. ``measured`` are its versions in that round's gate."""

    round: int
    rho: float | None = None
    shown: int = 0
    groups: int = 0
    measured: list[Contribution] = field(default_factory=list)

    @property
    def observed(self) -> float | None:
        """Share of the assisted groups that showed the chunk; None before any was seen."""
        return self.shown / self.groups if self.groups else None


@dataclass(frozen=True, slots=True)
class Text:
    """One text of the chunk: the versions that hold it, and its difference to the text before."""

    revision: ChunkRevision
    labels: list[str]
    pieces: list[diff.Piece]

    @property
    def known(self) -> bool:
        """Whether the text itself is here; of an imported version it may not be."""
        return bool(self.revision.content_sha256)


def seasons(experiment: Experiment, skill_id: str) -> list[Season]:
    """The rounds in which the chunk was trained with or measured: three queries."""
    found: dict[int, Season] = {}
    curricula = Curriculum.objects.filter(round__experiment=experiment)
    for number, chunks in curricula.values_list("round__number", "chunks"):
        for chunk in chunks:
            if chunk["skill_id"] == skill_id:
                found.setdefault(number, Season(number)).rho = chunk["rho"]
    for number, seen in _inclusion(experiment, skill_id).items():
        season = found.setdefault(number, Season(number))
        season.shown, season.groups = seen.shown, seen.n
    rows = Contribution.objects.filter(
        gate__round__experiment=experiment, logical_chunk_id=skill_id
    ).select_related("gate__round")
    for row in rows.order_by("gate__round__number", "order"):
        number = row.gate.round.number
        found.setdefault(number, Season(number)).measured.append(row)
    return [found[number] for number in sorted(found)]


def _inclusion(experiment: Experiment, skill_id: str) -> dict[int, InclusionRow]:
    """The counts of each round that trained with the chunk: one query."""
    names = [PREFIX + name for name in (*COUNTS, f"chunk/{skill_id}/inclusion_rate")]
    points = MetricPoint.objects.filter(experiment=experiment, name__in=names)
    by_round: dict[int, dict[str, dict[int, float]]] = {}
    for number, name, step, value in points.values_list("round__number", "name", "step", "value"):
        of_round = by_round.setdefault(number, {})
        of_round.setdefault(name.removeprefix(PREFIX), {})[step] = value
    rows = {
        number: inclusion_rows(Series(values), 0.0, {skill_id: 0.0})[1]
        for number, values in by_round.items()
    }
    return {number: row for number, row in rows.items() if row.n}


def texts(experiment: Experiment, skill_id: str) -> list[Text]:
    """The texts in the order in which versions took them up: one query."""
    entries = (
        SkillVersionChunk.objects.filter(
            version__experiment=experiment, revision__skill_id=skill_id
        )
        .select_related("revision", "version")
        .order_by("version__number")
    )
    order: list[ChunkRevision] = []
    labels: dict[int, list[str]] = {}
    for entry in entries:
        if entry.revision.pk not in labels:
            order.append(entry.revision)
        labels.setdefault(entry.revision.pk, []).append(entry.version.label)
    made: list[Text] = []
    before: ChunkRevision | None = None
    for revision in order:
        if before is None or not revision.content_sha256:
            pieces = [diff.Piece("=", revision.content)]
        else:
            pieces = diff.words(before.content, revision.content)
        made.append(Text(revision, labels[revision.pk], pieces))
        if revision.content_sha256:
            before = revision
    return made


def life_table(rows: Sequence[Season]) -> Table:
    """One line a round and measured version."""
    columns = [
        Column("round", _("Round"), "count"),
        Column("rho", _("Target rho"), "rate"),
        Column("observed", _("Observed"), "rate"),
        Column("shown", _("Groups with it"), "count"),
        Column("groups", _("Groups"), "count"),
        Column("intervention_id", _("Intervention"), "mono"),
        Column("coefficient", _("Coefficient"), "effect"),
        Column("low", _("From"), "effect"),
        Column("high", _("To"), "effect"),
        Column("status", _("Status")),
    ]
    lines = []
    for season in rows:
        measured: list[Contribution | None] = [*season.measured] or [None]
        for item in measured:
            lines.append(
                {
                    "round": season.round,
                    "rho": season.rho,
                    "observed": season.observed,
                    "shown": season.shown,
                    "groups": season.groups,
                    "intervention_id": item.intervention_id if item else None,
                    "coefficient": item.coefficient if item else None,
                    "low": item.low if item else None,
                    "high": item.high if item else None,
                    "status": item.status if item else None,
                }
            )
    return Table("life", columns, lines)
