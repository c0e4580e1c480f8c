"""Skill versions: the list, and one version with its chunks and its difference to another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from intraskill_web.core.access import may_operate
from intraskill_web.core.parameters import choice, experiment_in
from intraskill_web.core.tables import Column, Table
from intraskill_web.core.twin import page
from intraskill_web.episodes.links import episodes_url
from intraskill_web.experiments.models import Experiment
from intraskill_web.gates.models import KEPT, Contribution
from intraskill_web.skills import diff
from intraskill_web.skills.models import Curriculum, SkillVersion, SkillVersionChunk

LIMIT = 200


@require_safe
def version_list(request: HttpRequest) -> HttpResponse:
    """Every skill version, newest first; ``?experiment=`` narrows."""
    rows = (
        SkillVersion.objects.select_related("experiment", "from_round")
        .annotate(size=Count("entries"))
        .order_by("-experiment_id", "-number")
    )
    name = experiment_in(request.GET)
    if name:
        rows = rows.filter(experiment__name=name)
    found = list(rows[:LIMIT])
    context = {
        "section": "skills",
        "rows": found,
        "name": name,
        "total": len(found) if len(found) < LIMIT else rows.count(),
    }
    return page(
        request,
        "skills/list.html",
        context,
        lambda: {
            "skill_versions": [
                {
                    "experiment": v.experiment.name,
                    "number": v.number,
                    "label": v.label,
                    "bank_sha256": v.bank_sha256,
                    "chunks": v.size,
                    "from_round": v.from_round.number if v.from_round else None,
                }
                for v in found
            ]
        },
    )


@require_safe
def version_detail(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """The chunks in prompt order, and what changed since ``?against=`` (default: one before)."""
    experiment = get_object_or_404(Experiment, name=name)
    versions = {v.number: v for v in experiment.skill_versions.select_related("from_round")}
    if number not in versions:
        raise Http404(f"{name} S{number}")
    against = _against(request, number, versions)
    entries = _entries([versions[number], *([versions[against]] if against is not None else [])])
    own = entries[number]
    changes: list[diff.ChunkChange] = []
    if against is not None:
        changes = diff.compare(_texts(entries[against]), _texts(own))
    betas = _betas(versions[number])
    curriculum = Curriculum.objects.filter(version=versions[number]).select_related("round").first()
    version = versions[number]
    shown = [
        {
            "entry": entry,
            "beta": betas.get(entry.revision.skill_id),
            "words": diff.word_count(entry.revision.content),
            "href": episodes_url(experiment=name, chunk=entry.revision.skill_id),
        }
        for entry in own
    ]
    context = {
        "section": "skills",
        "experiment": experiment,
        "version": version,
        "versions": [versions[n] for n in sorted(versions)],
        "against": versions.get(against) if against is not None else None,
        "shown": shown,
        "complete": all(entry.revision.content for entry in own),
        "overrides": list(version.overrides.select_related("base")),
        "may_override": may_operate(request.user),
        "changes": changes,
        "counts": diff.counts(changes),
        "curriculum": curriculum,
        "table": _table(own, betas),
        "crumbs": [
            (_("Experiments"), reverse("experiments:list")),
            (name, reverse("experiments:detail", args=[name])),
            (_("Skills"), reverse("skills:list") + f"?experiment={name}"),
            (version.label, ""),
        ],
        "previous_url": _url(name, number - 1) if number - 1 in versions else "",
        "next_url": _url(name, number + 1) if number + 1 in versions else "",
    }

    def data() -> dict[str, Any]:
        return {
            "experiment": name,
            "label": version.label,
            "number": number,
            "bank_sha256": version.bank_sha256,
            "from_round": version.from_round.number if version.from_round else None,
            "chunks": _table(own, betas).data(),
            "against": against,
            "changes": [
                {"skill_id": c.skill_id, "change": c.change, "old": c.old_place, "new": c.new_place}
                for c in changes
            ],
        }

    return page(request, "skills/version.html", context, data, table=_table(own, betas))


def _against(request: HttpRequest, number: int, versions: dict[int, SkillVersion]) -> int | None:
    wanted = int(choice(request.GET, "against", map(str, sorted(versions)), str(number)))
    if wanted != number:
        return wanted
    return number - 1 if number - 1 in versions else None


def _entries(versions: list[SkillVersion]) -> dict[int, list[SkillVersionChunk]]:
    """The chunks of some versions of one experiment, by version number: one query."""
    found: dict[int, list[SkillVersionChunk]] = {version.number: [] for version in versions}
    numbers = {version.pk: version.number for version in versions}
    rows = SkillVersionChunk.objects.filter(version__in=versions).select_related("revision")
    for entry in rows.order_by("order"):
        found[numbers[entry.version_id]].append(entry)
    return found


def _texts(entries: list[SkillVersionChunk]) -> list[diff.Text]:
    return [
        diff.Text(
            e.revision.skill_id, e.revision.content, e.revision.content_sha256, e.revision.title
        )
        for e in entries
    ]


def _betas(version: SkillVersion) -> dict[str, float]:
    """What the gate that selected the version measured of each chunk: one query.

    The bank keeps what rho follows, which a standard gate shrinks; beta is the gate page's figure.
    """
    if version.from_round is None:
        return {}
    rows = Contribution.objects.filter(gate__round=version.from_round, status__in=KEPT).order_by(
        "gate_id"
    )
    return {c.logical_chunk_id: c.coefficient for c in rows if c.coefficient is not None}


def _table(entries: list[SkillVersionChunk], betas: Mapping[str, float]) -> Table:
    columns = [
        Column("order", _("Place"), "count"),
        Column("skill_id", _("Chunk"), "mono"),
        Column("title", _("Title")),
        Column("beta", _("β of its gate"), "effect"),
        Column("effect", _("Effect that rho follows"), "effect"),
        Column("rho", _("rho"), "rate"),
        Column("content_sha256", _("Text hash"), "mono"),
        Column("content", _("Text")),
    ]
    return Table(
        "chunks",
        columns,
        [
            {
                "order": entry.order + 1,
                "skill_id": entry.revision.skill_id,
                "title": entry.revision.title,
                "beta": betas.get(entry.revision.skill_id),
                "effect": entry.effect,
                "rho": entry.rho,
                "content_sha256": entry.revision.content_sha256,
                "content": entry.revision.content,
            }
            for entry in entries
        ],
    )


def _url(name: str, number: int) -> str:
    return reverse("skills:version", args=[name, number])
