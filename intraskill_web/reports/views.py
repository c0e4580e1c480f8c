"""Exports of an experiment: history, start, progress, preview, download."""

from __future__ import annotations

import mimetypes
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from intraskill_web.core import live
from intraskill_web.core.access import actor_of, may_operate
from intraskill_web.core.roles import OPERATE
from intraskill_web.core.twin import page
from intraskill_web.experiments.models import Experiment
from intraskill_web.reports.models import Export
from intraskill_web.reports.services import request_again, request_export
from intraskill_web.reports.silence import newest
from trainer.errors import InputError

# Pages of an export are shown under our address: plotly writes styles, nothing else is loosened.
PREVIEW_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; sandbox allow-scripts allow-same-origin allow-downloads"
)
TYPES = {".csv": "text/plain; charset=utf-8", ".md": "text/plain; charset=utf-8",
         ".yml": "text/plain; charset=utf-8", ".yaml": "text/plain; charset=utf-8",
         ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".css": "text/css; charset=utf-8", ".json": "application/json"}  # fmt: skip


@require_safe
def export_list(request: HttpRequest, name: str) -> HttpResponse:
    """Every export of an experiment, newest first, with the one that is being made."""
    experiment = get_object_or_404(Experiment, name=name)
    rows, facts = newest(Export.objects.filter(experiment=experiment))
    tag = live.etag(request, facts)
    if answer := live.unchanged(request, tag):
        return answer
    active = any(row.unfinished for row in rows)
    context = {
        "section": "experiments",
        "experiment": experiment,
        "crumbs": [
            (_("Experiments"), reverse("experiments:list")),
            (experiment.name, reverse("experiments:detail", args=[experiment.name])),
            (_("Reports"), ""),
        ],
        "exports": rows,
        "polling": live.is_poll(request),
        "etag": tag,
        "active": active,
        "may_operate": may_operate(request.user),
    }
    template = "reports/_list_live.html" if live.is_poll(request) else "reports/list.html"
    response = page(request, template, context, lambda: {"exports": [_data(row) for row in rows]})
    return live.finish(response, tag, active=active)


def _data(row: Export) -> dict[str, Any]:
    return {
        "id": row.pk, "names": row.names, "state": row.state, "done": row.done, "total": row.total,
        "files": row.files, "bytes": row.bytes, "manifest_sha256": row.manifest_sha256,
        "seconds": row.seconds, "problems": row.problems, "checks": row.checks,
        "languages": row.languages, "error": row.error, "created_at": row.created_at,
        "preview": reverse("reports:preview", args=[row.pk, "index.html"]),
        "download": reverse("reports:download", args=[row.pk]),
    }  # fmt: skip


@require_POST
@permission_required(OPERATE, raise_exception=True)
def start(request: HttpRequest, name: str) -> HttpResponse:
    """Ask for an export."""
    experiment = get_object_or_404(Experiment, name=name)
    try:
        request_export(
            [experiment],
            actor=actor_of(request),
            languages=request.POST.get("languages", "en,zh"),
            archive=request.POST.get("archive", "") == "on",
        )
    except InputError as error:
        messages.error(request, error.reason)
    return redirect("reports:list", name=name)


@require_safe
def comparisons(request: HttpRequest) -> HttpResponse:
    """Every comparison of several experiments, and the form for a new one."""
    rows, facts = newest(Export.objects.filter(experiment=None))
    tag = live.etag(request, [*facts, Experiment.objects.count()])
    if answer := live.unchanged(request, tag):
        return answer
    active = any(row.unfinished for row in rows)
    context = {
        "section": "experiments",
        "crumbs": [(_("Experiments"), reverse("experiments:list")), (_("Comparisons"), "")],
        "experiments": list(Experiment.objects.values_list("name", flat=True)[:200]),
        "exports": rows,
        "polling": live.is_poll(request),
        "etag": tag,
        "active": active,
        "may_operate": may_operate(request.user),
    }
    template = "reports/_list_live.html" if live.is_poll(request) else "reports/compare.html"
    response = page(request, template, context, lambda: {"exports": [_data(row) for row in rows]})
    return live.finish(response, tag, active=active)


@require_POST
@permission_required(OPERATE, raise_exception=True)
def compare(request: HttpRequest) -> HttpResponse:
    """Ask for a comparison of the chosen experiments."""
    names = request.POST.getlist("names")
    chosen = list(Experiment.objects.filter(name__in=names).order_by("name"))
    try:
        if len(chosen) < 2:
            raise InputError(_("Choose two experiments at least"), field="names", value=names)
        request_export(
            chosen,
            actor=actor_of(request),
            languages=request.POST.get("languages", "en,zh"),
        )
    except InputError as error:
        messages.error(request, error.reason)
    return redirect("reports:compare")


@require_POST
@permission_required(OPERATE, raise_exception=True)
def again(request: HttpRequest, pk: int) -> HttpResponse:
    """Hand in an export again that failed."""
    export = get_object_or_404(Export, pk=pk)
    try:
        request_again(export, actor=actor_of(request))
    except InputError as error:
        messages.error(request, error.reason)
    if export.experiment is None:
        return redirect("reports:compare")
    return redirect("reports:list", name=export.experiment.name)


@require_safe
def preview(request: HttpRequest, pk: int, path: str) -> HttpResponseBase:
    """A file of a finished export, under a policy of its own."""
    export = get_object_or_404(Export, pk=pk, state="succeeded")
    root = export.folder.resolve()
    file = (root / (path or "index.html")).resolve()
    if not file.is_relative_to(root) or not file.is_file():
        raise Http404
    kind = TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0]
    response = FileResponse(file.open("rb"), content_type=kind or "application/octet-stream")
    response["Content-Security-Policy"] = PREVIEW_POLICY
    return response


@require_safe
def download(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The archive of an export."""
    export = get_object_or_404(Export, pk=pk, state="succeeded")
    if not export.archive_file.is_file():
        raise Http404
    return FileResponse(
        export.archive_file.open("rb"), as_attachment=True, filename=export.archive_file.name
    )
