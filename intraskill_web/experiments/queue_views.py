"""The queue: what runs, what waits and why, who works."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, Max, Q
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from intraskill_web.core import live
from intraskill_web.core.twin import page
from intraskill_web.experiments.models import Attempt
from intraskill_web.experiments.queue_page import attempt_data, host_lines
from intraskill_web.experiments.waiting import waiting_reason
from jobs import queue
from jobs.models import Host
from jobs.transitions import ACTIVE

RECENT = 50


@require_safe
def queue_page(request: HttpRequest) -> HttpResponse:
    """Hosts and who holds them, active and waiting attempts with the reason, the newest ended."""
    status = queue.status()
    facts = Attempt.objects.aggregate(
        Max("updated_at"), Count("id"), active=Count("id", filter=Q(state__in=ACTIVE))
    )
    beats = [(w.name, w.state, w.job_id) for w in status.workers]
    hosts = list(Host.objects.select_related("lease__stage__round__experiment").order_by("name"))
    seen = [(h.name, h.is_up, h.lease_id, h.gpus, h.queues, h.free_disk_bytes >> 30) for h in hosts]
    tag = live.etag(request, [*facts.values(), status.up, status.waiting, beats, seen])
    if answer := live.unchanged(request, tag):
        return answer
    rows = Attempt.objects.select_related("stage__round__experiment__owner")
    working = list(rows.filter(state__in=ACTIVE).order_by("created_at"))
    finished = list(rows.exclude(state__in=ACTIVE).order_by("-id")[:RECENT])
    active = [(a, waiting_reason(a, status, working, hosts)) for a in working]
    lines = host_lines(hosts, working)
    polling = live.is_poll(request)
    context = {
        "section": "queue",
        "status": status,
        "active": active,
        "hosts": lines,
        "finished": finished,
        "total": facts["id__count"] - facts["active"],
        "polling": polling,
        "etag": tag,
        "busy": bool(working),
    }
    template = "experiments/_queue_live.html" if polling else "experiments/queue.html"

    def data() -> dict[str, Any]:
        return {
            "up": status.up,
            "waiting": status.waiting,
            "error": status.error,
            "workers": [
                {
                    "name": w.name,
                    "host": w.host,
                    "pid": w.pid,
                    "takes": w.kinds,
                    "state": w.state,
                    "job": w.job_id,
                }
                for w in status.workers
            ],
            "hosts": [line.data() for line in lines],
            "active": [attempt_data(a) | {"why": why} for a, why in active],
            "finished": [attempt_data(a) for a in finished],
        }

    return live.finish(page(request, template, context, data), tag, active=bool(working))
