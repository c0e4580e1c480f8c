"""The page of one chunk, and downloads of a version."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from intraskill_web.core.twin import page
from intraskill_web.episodes.links import episodes_url
from intraskill_web.experiments.models import Experiment
from intraskill_web.review.panel import panel
from intraskill_web.review.services import Subject
from intraskill_web.skills.life import life_table, seasons, texts
from intraskill_web.skills.models import SkillVersion
from trainer.gate.artefacts import skill_markdown


@require_safe
def chunk_detail(request: HttpRequest, name: str, skill_id: str) -> HttpResponse:
    """Contribution, target, inclusion and text of one chunk over the rounds."""
    experiment = get_object_or_404(Experiment, name=name)
    found, revisions = seasons(experiment, skill_id), texts(experiment, skill_id)
    if not found and not revisions:
        raise Http404(f"{name}: {skill_id}")
    table = life_table(found)
    title = next((t.revision.title for t in reversed(revisions) if t.known), "")
    title = title or next((m.title for s in found for m in s.measured if m.title), skill_id)
    said = panel(Subject(experiment, skill_id=skill_id), request.user)
    context = said | {
        "section": "skills",
        "experiment": experiment,
        "skill_id": skill_id,
        "title": title,
        "seasons": found,
        "texts": revisions,
        "episodes_href": episodes_url(experiment=name, chunk=skill_id),
        "crumbs": [
            (_("Experiments"), reverse("experiments:list")),
            (name, reverse("experiments:detail", args=[name])),
            (_("Skills"), reverse("skills:list") + f"?experiment={name}"),
            (title, ""),
        ],
    }

    def data() -> dict[str, Any]:
        return {
            "skill_id": skill_id,
            "rounds": table.data(),
            "review": said["review"].data(),
            "texts": [
                {
                    "content_sha256": t.revision.content_sha256,
                    "version": t.revision.version,
                    "versions": t.labels,
                    "content": t.revision.content if t.known else None,
                }
                for t in revisions
            ],
        }

    return page(request, "skills/chunk.html", context, data, table=table)


@require_safe
def version_file(request: HttpRequest, name: str, number: int, kind: str) -> HttpResponse:
    """``bank.json``: the bank as the gate froze it. ``skill.md``: its texts in prompt order."""
    version = get_object_or_404(SkillVersion, experiment__name=name, number=number)
    if kind == "bank.json":
        path = version.experiment.folder / version.path
        if not version.path or not path.is_file():
            raise Http404(f"{version}: its bank is not here")
        response = HttpResponse(path.read_bytes(), content_type="application/json")
    else:
        entries = version.entries.select_related("revision").order_by("order")
        skills = [{"content": entry.revision.content} for entry in entries]
        if not all(skill["content"] for skill in skills):
            raise Http404(f"{version}: not all of its texts are here")
        text = skill_markdown({"skills": skills})
        response = HttpResponse(text, content_type="text/markdown; charset=utf-8")
    file = f"{name}-{version.label}-{kind}"
    response["Content-Disposition"] = f'attachment; filename="{file}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response
