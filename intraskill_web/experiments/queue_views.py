"""The queue (what runs, what waits and why, who works) and one attempt with its log."""

from __future__ import annotations

import re
from typing import Any

from django.db.models import Count, Max, Q
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from intraskill_web.core import formats, live
from intraskill_web.core.twin import json_response, page
from intraskill_web.experiments.logs import CHUNK, last_error, read_log, tail_start
from intraskill_web.experiments.models import Attempt
from intraskill_web.experiments.queue_page import attempt_data, waiting_reason
from intraskill_web.experiments.round_view import crumbs
from jobs import queue
from jobs.transitions import ACTIVE, State

RECENT = 50
LEVELS = ("", "info", "warn", "error")


@require_safe
def queue_page(request: HttpRequest) -> HttpResponse:
    """Workers, active and waiting attempts with the reason, and the newest finished ones."""
    status = queue.status()
    facts = Attempt.objects.aggregate(
        Max("updated_at"), Count("id"), active=Count("id", filter=Q(state__in=ACTIVE))
    )
    beats = [(w.name, w.state, w.job_id) for w in status.workers]
    tag = live.etag(request, [*facts.values(), status.up, status.waiting, beats])
    if answer := live.unchanged(request, tag):
        return answer
    rows = Attempt.objects.select_related("stage__round__experiment")
    working = list(rows.filter(state__in=ACTIVE).order_by("created_at"))
    finished = list(rows.exclude(state__in=ACTIVE).order_by("-id")[:RECENT])
    active = [(a, waiting_reason(a, status, working)) for a in working]
    polling = live.is_poll(request)
    context = {
        "section": "queue",
        "status": status,
        "active": active,
        "finished": finished,
        "total": facts["id__count"],
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
                {"name": w.name, "host": w.host, "pid": w.pid, "state": w.state, "job": w.job_id}
                for w in status.workers
            ],
            "active": [attempt_data(a) | {"why": why} for a, why in active],
            "finished": [attempt_data(a) for a in finished],
        }

    return live.finish(page(request, template, context, data), tag, active=bool(working))


@require_safe
def attempt_page(request: HttpRequest, pk: int) -> HttpResponse:
    """One attempt: how it ended and why, what it ran in, and its log."""
    attempt = _attempt(pk)
    level = _level(request)
    path = attempt.log_file
    start = _integer(request, "from", tail_start(path))
    part = read_log(path, start, level=level)
    round_ = attempt.stage.round
    others = list(Attempt.objects.filter(stage=attempt.stage).order_by("number"))
    bad = attempt.state in (State.FAILED, State.LOST, State.INCOMPLETE)
    context = {
        "section": "queue",
        "attempt": attempt,
        "stage": attempt.stage,
        "round": round_,
        "crumbs": crumbs(
            round_,
            (
                _("%(stage)s, attempt %(n)d")
                % {"stage": attempt.stage.get_kind_display(), "n": attempt.number},
                "",
            ),
        ),
        "others": others,
        "log": part,
        "level": level,
        "levels": LEVELS,
        "log_attempt": attempt,
        "earlier": max(0, part.start - CHUNK) if part.start else None,
        "failed": bad,
        "error_line": last_error(path) if bad else None,
        "facts": _environment(attempt),
    }
    return page(
        request,
        "experiments/attempt.html",
        context,
        lambda: attempt_data(attempt) | {"log": {"size": part.size, "path": attempt.log_path}},
    )


@require_safe
def log_lines(request: HttpRequest, pk: int) -> HttpResponse:
    """Whole log lines from a byte offset: HTML rows, or JSON with ``?format=json``."""
    attempt = _attempt(pk)
    level = _level(request)
    part = read_log(attempt.log_file, _integer(request, "from", 0), level=level)
    over = attempt.state not in ACTIVE and part.at_end
    if request.GET.get("format") == "json":
        lines = [
            {
                "offset": x.offset,
                "number": x.number,
                "time": x.time,
                "level": x.level,
                "text": x.text,
            }
            for x in part.lines
        ]
        return json_response({"lines": lines, "next": part.next, "size": part.size, "ended": over})
    response = render(request, "experiments/_log_lines.html", {"log": part, "log_attempt": attempt})
    response["X-Log-Next"] = str(part.next)
    response["X-Log-Ended"] = "1" if over else "0"
    response["Cache-Control"] = "private, no-store"
    return response


@require_safe
def log_file(request: HttpRequest, pk: int) -> HttpResponse | FileResponse:
    """The whole log as it is, as a download."""
    attempt = _attempt(pk)
    try:
        handle = attempt.log_file.open("rb")
    except FileNotFoundError:
        raise Http404(attempt.log_path) from None
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", str(attempt)) + ".log"
    return FileResponse(
        handle, as_attachment=True, filename=name, content_type="text/plain; charset=utf-8"
    )


def _attempt(pk: int) -> Attempt:
    return get_object_or_404(Attempt.objects.select_related("stage__round__experiment"), pk=pk)


def _level(request: HttpRequest) -> str:
    level = request.GET.get("level", "")
    return level if level in LEVELS else ""


def _integer(request: HttpRequest, name: str, default: int) -> int:
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else default


def _environment(attempt: Attempt) -> list[tuple[str, str]]:
    """The snapshot of the machine, flat, in the order it was taken."""
    flat: list[tuple[str, str]] = []
    for key, value in attempt.environment.items():
        if isinstance(value, dict):
            flat += [(str(k), formats.UNKNOWN if v is None else str(v)) for k, v in value.items()]
        else:
            flat.append((str(key), formats.UNKNOWN if value is None else str(value)))
    return flat


def attempt_url(attempt: Attempt) -> str:
    """The page of ``attempt``."""
    return reverse("experiments:attempt", args=[attempt.pk])
