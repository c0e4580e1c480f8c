"""The tasks behind one effect of a gate, and the test of an experiment."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from intraskill_web.core.parameters import choice
from intraskill_web.core.twin import page
from intraskill_web.experiments.models import Experiment
from intraskill_web.experiments.round_view import crumbs
from intraskill_web.gates import final_test
from intraskill_web.gates.evidence import evidence_of
from intraskill_web.gates.models import Contribution, GateRun
from intraskill_web.gates.tasks import PAGE, matching, paired, tasks_table, tasks_url


@require_safe
def gate_tasks(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """``?chunk=&shown=yes|no&page=``: paired episodes, the largest residual first."""
    gates = GateRun.objects.select_related("round__experiment").filter(
        round__experiment__name=name, round__number=number
    )
    profile = request.GET.get("profile", "")
    gate = (gates.filter(profile=profile) if profile else gates).order_by("id").first()
    evidence = evidence_of(gate) if gate else None
    if gate is None or evidence is None:
        raise Http404(f"{name} / {number}: no observations")
    chunk = request.GET.get("chunk", "")
    shown = choice(request.GET, "shown", ("yes", "no"), "yes") == "yes"
    item = get_object_or_404(Contribution, gate=gate, intervention_id=chunk)
    pages = Paginator(matching(evidence, chunk, shown), PAGE)
    at = pages.page(int(choice(request.GET, "page", map(str, pages.page_range), "1")))
    pairs = paired(gate, list(at))
    table = tasks_table(pairs)
    here = tasks_url(name, number, gate.profile, chunk, shown)
    where = reverse("gates:detail", args=[name, number]) + f"?profile={gate.profile}"
    context = {
        "section": "gates",
        "item": item,
        "shown": shown,
        "pairs": pairs,
        "total": pages.count,
        "first": at.start_index(),
        "last": at.end_index(),
        "present_url": tasks_url(name, number, gate.profile, chunk, True),
        "absent_url": tasks_url(name, number, gate.profile, chunk, False),
        "next_url": f"{here}&page={at.next_page_number()}" if at.has_next() else "",
        "csv_url": f"{here}&page={at.number}&format=csv",
        "crumbs": [*crumbs(gate.round, (_("Gate"), where)), (_("Tasks"), "")],
    }

    def data() -> dict[str, Any]:
        return {"chunk": chunk, "shown": shown, "total": pages.count, "tasks": table.data()}

    return page(request, "gates/tasks.html", context, data, table=table)


@require_safe
def test_detail(request: HttpRequest, name: str) -> HttpResponse:
    """The test arms of an experiment and their paired differences."""
    experiment = get_object_or_404(Experiment, name=name)
    test = final_test.build(experiment)
    context = {
        "section": "experiments",
        "experiment": experiment,
        "test": test,
        "crumbs": [
            (_("Experiments"), reverse("experiments:list")),
            (name, reverse("experiments:detail", args=[name])),
            (_("Test"), ""),
        ],
    }
    return page(request, "gates/test.html", context, test.data, table=test.arms)
