"""Adding to a review, and overrides: the form, one override, its bank."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from intraskill_web.core.access import actor_of
from intraskill_web.core.back import way_back
from intraskill_web.core.parameters import whole
from intraskill_web.core.roles import OPERATE
from intraskill_web.core.twin import page
from intraskill_web.experiments.models import Experiment
from intraskill_web.gates.models import Contribution, GateRun
from intraskill_web.review.models import Override
from intraskill_web.review.overriding import choices, make_override
from intraskill_web.review.services import Subject, add_event
from intraskill_web.skills import diff
from intraskill_web.skills.models import ChunkRevision, SkillVersion
from trainer.errors import InputError


@require_POST
@permission_required(OPERATE, raise_exception=True)
def add(request: HttpRequest, name: str) -> HttpResponse:
    """POST ``action, text`` and ``gate`` (its id) or ``chunk``: one event."""
    experiment = get_object_or_404(Experiment, name=name)
    subject = _subject(experiment, request.POST)
    try:
        text = request.POST.get("text", "")
        add_event(subject, request.POST.get("action", ""), text, actor=actor_of(request))
    except InputError as error:
        messages.error(request, error.reason)
    back = way_back(request, reverse("experiments:detail", args=[name]))
    return redirect(f"{back}#review")


def _subject(experiment: Experiment, sent: Any) -> Subject:
    """The gate or chunk that is named. Raises Http404 for one that the experiment has not, and
    ParameterError for what is no gate's id."""
    gate_id, skill_id = whole(sent, "gate", None), sent.get("chunk", "")
    if gate_id is not None:
        gate = get_object_or_404(
            GateRun.objects.select_related("round"), pk=gate_id, round__experiment=experiment
        )
        return Subject(experiment, gate=gate)
    known = (
        ChunkRevision.objects.filter(experiment=experiment, skill_id=skill_id).exists()
        or Contribution.objects.filter(
            gate__round__experiment=experiment, logical_chunk_id=skill_id
        ).exists()
    )
    if not skill_id or not known:
        raise Http404(skill_id)
    return Subject(experiment, skill_id=skill_id)


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(OPERATE, raise_exception=True)
def override_form(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """Choose the texts of an override of one version, and say why."""
    base = get_object_or_404(
        SkillVersion.objects.select_related("experiment"), experiment__name=name, number=number
    )
    found = choices(base)
    chosen = {c.key for c in found if c.kept}
    problem, reason = "", ""
    if request.method == "POST":
        chosen = set(request.POST.getlist("chunk"))
        reason = request.POST.get("reason", "")[:2000]
        try:
            made = make_override(base, list(chosen), reason, actor=actor_of(request))
        except InputError as error:
            problem = error.reason
        else:
            messages.success(request, _("%(label)s is on record.") % {"label": made.label})
            return redirect("review:override", name=name, pk=made.pk)
    context = {
        "section": "skills",
        "base": base,
        "own": [(c, c.key in chosen) for c in found if c.kept],
        "others": [(c, c.key in chosen) for c in found if not c.kept],
        "problem": problem,
        "reason": reason,
        "crumbs": _crumbs(base, (_("Override"), "")),
    }
    data = {"base": base.label, "choices": [[c.key, c.skill_id, c.kept] for c in found]}
    status = 409 if problem else 200
    return page(request, "review/override_form.html", context, lambda: data, status=status)


@require_safe
def override_detail(request: HttpRequest, name: str, pk: int) -> HttpResponse:
    """One override: who, when, why, and its difference to the version the gate selected."""
    made = _override(name, pk)
    old = [
        diff.Text(r.skill_id, r.content, r.content_sha256, r.title)
        for r in (e.revision for e in made.base.entries.select_related("revision"))
    ]
    new = [
        diff.Text(c["skill_id"], c["content"], c["content_sha256"], c["title"]) for c in made.chunks
    ]
    changes = diff.compare(old, new)
    context = {
        "section": "skills",
        "override": made,
        "changes": [c for c in changes if c.change != "unchanged"],
        "unchanged": sum(c.change == "unchanged" for c in changes),
        "crumbs": _crumbs(made.base, (made.label, "")),
    }

    def data() -> dict[str, Any]:
        return {
            "experiment": name,
            "label": made.label,
            "override_of": made.base.label,
            "bank_sha256": made.bank_sha256,
            "reason": made.reason,
            "by": made.author.get_username() if made.author else None,
            "at": made.at,
            "chunks": made.chunks,
            "changes": [{"skill_id": c.skill_id, "change": c.change} for c in changes],
        }

    return page(request, "review/override.html", context, data)


@require_safe
def override_bank(request: HttpRequest, name: str, pk: int) -> HttpResponse:
    """The bank of an override; its metadata says that it is one."""
    made = _override(name, pk)
    path = made.experiment.folder / made.path
    if not path.is_file():
        raise Http404(f"{made}: its bank is not here")
    response = HttpResponse(path.read_bytes(), content_type="application/json")
    file = f"{name}-{made.label}-bank.json"
    response["Content-Disposition"] = f'attachment; filename="{file}"'
    return response


def _override(name: str, pk: int) -> Override:
    rows = Override.objects.select_related("experiment", "base__experiment", "author")
    return get_object_or_404(rows, pk=pk, experiment__name=name)


def _crumbs(base: SkillVersion, last: tuple[str, str]) -> list[tuple[str, str]]:
    name = base.experiment.name
    return [
        (_("Experiments"), reverse("experiments:list")),
        (name, reverse("experiments:detail", args=[name])),
        (_("Skills"), reverse("skills:list") + f"?experiment={name}"),
        (base.label, reverse("skills:version", args=[name, base.number])),
        last,
    ]
