"""The gate of a round, and the list of all gates."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.functional import SimpleLazyObject
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from intraskill_web.charts.rows import ForestScale, forest_axis
from intraskill_web.core.parameters import choice
from intraskill_web.core.twin import page
from intraskill_web.episodes.links import episodes_url
from intraskill_web.experiments.models import Round
from intraskill_web.experiments.round_view import crumbs
from intraskill_web.gates import detail, health
from intraskill_web.gates.evidence import Evidence, evidence_of
from intraskill_web.gates.forest import contributions_table, forest
from intraskill_web.gates.models import Contribution, GateRun
from intraskill_web.gates.panel import difference_drawing
from intraskill_web.gates.soundness import design_checks
from intraskill_web.review.panel import panel
from intraskill_web.review.services import Subject
from jobs.transitions import DONE

LIMIT = 200


@require_safe
def gate_list(request: HttpRequest) -> HttpResponse:
    """Every gate, newest first."""
    rows = list(
        GateRun.objects.select_related("round__experiment")
        .prefetch_related("contributions")
        .order_by("-id")[:LIMIT]
    )
    ends = [e for g in rows for e in (g.delta_low, g.delta_high, g.delta_mean) if e is not None]
    scale = ForestScale.holding(ends)
    lines = [
        {
            "gate": gate,
            "drawing": difference_drawing(scale, gate),
            "total": len(gate.contributions.all()),
            "selected": sum(c.status in ("selected", "held") for c in gate.contributions.all()),
        }
        for gate in rows
    ]
    context = {
        "section": "gates",
        "rows": lines,
        "total": len(lines) if len(lines) < LIMIT else GateRun.objects.count(),
    }
    return page(
        request, "gates/list.html", context, lambda: {"gates": [gate_data(gate) for gate in rows]}
    )


@require_safe
def gate_detail(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """Health, bare against masked, and the contribution of each intervention."""
    try:
        round_ = Round.objects.select_related("experiment").get(
            experiment__name=name, number=number
        )
    except Round.DoesNotExist:
        raise Http404(f"{name} / {number}") from None
    runs = list(round_.gate_runs.order_by("id"))
    profile = choice(request.GET, "profile", [g.profile for g in runs]) if runs else ""
    gate = next((g for g in runs if g.profile == profile), runs[0] if runs else None)
    if gate is None:
        stages = list(round_.stages.order_by("position"))
        stage = next((stage for stage in stages if stage.kind == "gate"), None)
        before = [s for s in stages if stage and s.position < stage.position]
        context = {
            "section": "gates", "round": round_, "gate": None, "stage": stage,
            "needs": any(one.state not in DONE for one in before),
            "crumbs": crumbs(round_, (_("Gate"), "")),
        }  # fmt: skip
        return page(request, "gates/detail.html", context, lambda: {"gate": None})
    gate.round = round_
    rows = list(gate.contributions.order_by("order"))
    table = contributions_table(sorted(rows, key=lambda r: (r.rank is None, r.rank or 0, r.order)))
    evidence = evidence_of(gate)
    checked = [*health.checks(gate, rows), *design_checks(gate, evidence)]
    complete = all(check.ok is not False for check in checked)
    query = {"experiment": name, "round": number}
    below = SimpleLazyObject(lambda: detail.build(request.GET, gate, rows, evidence))
    drawn = SimpleLazyObject(lambda: forest(gate, rows, experiment=name))
    scale = ForestScale.holding([e for e in (gate.delta_low, gate.delta_high) if e is not None])
    said = panel(Subject(round_.experiment, gate=gate), request.user)
    context = said | {
        "section": "gates",
        "round": round_,
        "gate": gate,
        "detail": below,
        "complete": complete,
        "twin": "twin" in request.GET,
        "body_key": body_key(request, gate, rows, evidence),
        "runs": runs,
        "crumbs": crumbs(round_, (_("Gate"), "")),
        "checks": checked,
        "passed": sum(check.ok is True for check in checked),
        "known": sum(check.ok is not None for check in checked),
        "forest": drawn,
        "table": table,
        "masked_n": gate.summary.get("masked_n", gate.observations),
        "bare_n": gate.summary.get("bare_n", gate.observations),
        "difference": difference_drawing(scale, gate, height=20),
        "difference_axis": forest_axis(scale),
        "bare_href": episodes_url(**query, purpose="bare"),
        "masked_href": episodes_url(**query, purpose="masked"),
        "zero_inside": complete and gate.delta_low is not None and gate.delta_high is not None
        and gate.delta_low <= 0 <= gate.delta_high,
    }  # fmt: skip

    def data() -> dict[str, Any]:
        return gate_data(gate) | {
            "checks": [{"key": c.key, "detail": c.detail, "ok": c.ok} for c in checked],
            "contributions": table.data() if complete else [],
            "review": said["review"].data(),
            **(below.data() if complete else {}),
        }

    wanted = choice(request.GET, "panel", ("evidence", "components"))
    chosen = table if complete else None
    if complete and wanted:
        chosen = below.table if wanted == "evidence" else below.parts
    return page(request, "gates/detail.html", context, data, table=chosen)


SHOWN = ("rank", "intervention_id", "logical_chunk_id", "title", "operation", "coefficient", "se",
         "low", "high", "status", "with_n", "without_n")  # fmt: skip


def body_key(
    request: HttpRequest, gate: GateRun, rows: Sequence[Contribution], evidence: Evidence | None
) -> str:
    """What the forest and everything below it are made from; equal keys give equal texts."""
    parts = [
        get_language(),
        request.path,
        sorted(request.GET.items()),
        [gate.pk, gate.profile, gate.observations, gate.requested, gate.summary],
        [[getattr(row, name) for name in SHOWN] for row in rows],
        evidence.stamp if evidence else None,
    ]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def gate_data(gate: GateRun) -> dict[str, Any]:
    """A gate for JSON."""
    return {
        "experiment": gate.round.experiment.name,
        "round": gate.round.number,
        "profile": gate.profile,
        "status": gate.status,
        "pool_sha256": gate.pool_sha256,
        "assignment_sha256": gate.assignment_sha256,
        "observations": gate.observations,
        "requested": gate.requested,
        "bare_mean": gate.bare_mean,
        "masked_mean": gate.masked_mean,
        "delta_mean": gate.delta_mean,
        "delta_interval": [gate.delta_low, gate.delta_high],
        "summary": gate.summary,
    }
