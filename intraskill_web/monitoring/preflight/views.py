"""The checklist as a page: of an experiment's next round, and of slime's launch files."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from intraskill_web.core import live
from intraskill_web.core.access import may_operate
from intraskill_web.core.roles import OPERATE
from intraskill_web.core.twin import page
from intraskill_web.experiments.models import Experiment
from intraskill_web.monitoring.models import Preflight
from intraskill_web.monitoring.preflight import inputs, launches, run
from intraskill_web.monitoring.preflight.items import Item, item_of


@require_safe
def of_experiment(request: HttpRequest, name: str) -> HttpResponse:
    """The next round's checklist; an operator who opens it sets the checks going."""
    experiment = get_object_or_404(Experiment, name=name)
    number = inputs.next_round(experiment)
    target = inputs.target_of(experiment, number)
    items, report = run.checklist(experiment)
    if report is None and may_operate(request.user) and not live.is_poll(request):
        run.kick(target, lambda: run.report_of(experiment, number))
    title = _("Preflight of round %(n)d") % {"n": number}
    crumbs = [
        (_("Experiments"), reverse("experiments:list")),
        (name, reverse("experiments:detail", args=[name])),
        (title, ""),
    ]
    again = reverse("monitoring:check_experiment", args=[name])
    return _answer(request, title, target, items, report, crumbs=crumbs, again=again)


@require_POST
@permission_required(OPERATE, raise_exception=True)
def check_experiment(request: HttpRequest, name: str) -> HttpResponse:
    """Look again, also at inputs that were looked at."""
    experiment = get_object_or_404(Experiment, name=name)
    number = inputs.next_round(experiment)
    target = inputs.target_of(experiment, number)
    run.forget(experiment, number)
    run.kick(target, lambda: run.report_of(experiment, number))
    return redirect("monitoring:preflight", name=name)


@require_safe
def of_launch(request: HttpRequest, file: str = "") -> HttpResponse:
    """The slime engine's checklist of one launch file; the newest report of each in the list."""
    files = {path.name: path for path in launches.launch_files()}
    name = file or next(iter(files), "")
    if name and name not in files:
        raise Http404(name)
    target = f"{run.SLIME}/{name}"
    report = Preflight.objects.filter(target=target).first() if name else None
    items = [item_of(check) for check in report.checks] if report else []
    title = _("Preflight of a slime launch")
    crumbs = [(_("Queue"), reverse("experiments:queue")), (title, "")]
    again = reverse("monitoring:check_launch", args=[name]) if name else ""
    return _answer(
        request, title, target, items, report, crumbs=crumbs, again=again,
        files=list(files), chosen=name,
    )  # fmt: skip


@require_POST
@permission_required(OPERATE, raise_exception=True)
def check_launch(request: HttpRequest, file: str) -> HttpResponse:
    """Run the checks of a launch file that the list knows."""
    path = {path.name: path for path in launches.launch_files()}.get(file)
    if path is None:
        raise Http404(file)
    run.kick(f"{run.SLIME}/{file}", lambda: run.look_at_launch(path))
    return redirect("monitoring:launch", file=file)


def _answer(
    request: HttpRequest,
    title: str,
    target: str,
    items: list[Item],
    report: Preflight | None,
    **more: Any,
) -> HttpResponse:
    checking = run.under_way(target)
    tag = live.etag(request, [target, checking, report and report.checked_at, items])
    if answer := live.unchanged(request, tag):
        return answer
    red = [item for item in items if item.red]
    passed = sum(item.state == "passed" for item in items)
    context = {
        "section": "experiments",
        "title": title,
        "items": items,
        "report": report,
        "red": len(red),
        "passed": passed,
        "checking": checking,
        "operate": may_operate(request.user),
        "polling": live.is_poll(request),
        "etag": tag,
        "active": checking,
        **more,
    }
    name = "_preflight_live" if live.is_poll(request) else "preflight"
    response = page(
        request,
        f"monitoring/{name}.html",
        context,
        lambda: {
            "target": target,
            "ready": report is not None and not red,
            "checking": checking,
            "checks": [item.data() for item in items],
            "checked_at": report.checked_at if report else None,
        },
    )
    return live.finish(response, tag, active=checking)
