"""One attempt with its log: the page, lines by byte offset, and the whole file."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from intraskill_web.core.parameters import whole
from intraskill_web.core.twin import asks_json, json_response, page
from intraskill_web.experiments.config_changes import rows
from intraskill_web.experiments.models import Attempt
from intraskill_web.experiments.queue_page import attempt_data
from intraskill_web.experiments.round_view import crumbs
from intraskill_web.monitoring.attempts import environment
from intraskill_web.monitoring.attempts.failure import ended_how, excerpt, hints
from intraskill_web.monitoring.attempts.levels import LEVELS, SEARCHED, level_of, level_word
from intraskill_web.monitoring.attempts.logs import CHUNK, LogPart, read_log, tail_start
from intraskill_web.monitoring.attempts.search import LONGEST, count_levels, search_log
from jobs.transitions import ACTIVE, State


@require_safe
def attempt_page(request: HttpRequest, pk: int) -> HttpResponse:
    """One attempt: how it ended and why, what it ran in, and its log."""
    attempt = _attempt(pk)
    level, text = level_of(request), _text(request)
    part = _part(request, attempt, level, text)
    round_ = attempt.stage.round
    name = _("%(stage)s, attempt %(n)d") % {
        "stage": attempt.stage.get_kind_display(), "n": attempt.number,
    }  # fmt: skip
    context = {
        "section": "queue",
        "attempt": attempt,
        "stage": attempt.stage,
        "round": round_,
        "crumbs": crumbs(round_, (name, "")),
        "owner": round_.experiment.owner,
        "changes": rows(attempt.changes),
        "others": list(Attempt.objects.filter(stage=attempt.stage).order_by("number")),
        "log": part,
        "log_attempt": attempt,
        "facts": environment.flat(attempt.environment),
        **_links(attempt, part, level, text),
        **_failure(attempt),
    }
    return page(
        request,
        "experiments/attempt.html",
        context,
        lambda: (
            attempt_data(attempt)
            | {
                "ended_how": context["ended_how"],
                "hints": context["hints"],
                "log": {"size": part.size, "path": attempt.log_path},
            }
        ),
    )


def _part(request: HttpRequest, attempt: Attempt, level: str, text: str) -> LogPart:
    """What the log shows: matches from a byte on, or the lines there, or the tail."""
    path, over = attempt.log_file, attempt.state not in ACTIVE
    if text or level in SEARCHED:
        return search_log(path, whole(request.GET, "from"), text=text, level=level, over=over)
    return read_log(path, whole(request.GET, "from", tail_start(path)), level=level, over=over)


def _links(attempt: Attempt, part: LogPart, level: str, text: str) -> dict[str, Any]:
    """Level buttons with counts, and the ways to earlier and later lines."""
    counts = count_levels(attempt.log_file)

    def address(**query: object) -> str:
        given = {"level": level, "q": text, **query}
        return "?" + urlencode({key: value for key, value in given.items() if value != ""})

    searched = bool(text) or level in SEARCHED
    earlier = part.start and not searched
    return {
        "level": level,
        "q": text,
        "longest": LONGEST,
        "searched": searched,
        "levels": [
            (address(level=key), level_word(key), (counts or {}).get(key), key == level)
            for key in LEVELS
        ],
        "earlier": address(**{"from": max(0, part.start - CHUNK)}) if earlier else "",
        "later": "" if part.at_end else address(**{"from": part.next}),
        "whole": address(q="", level=""),
    }


def _failure(attempt: Attempt) -> dict[str, Any]:
    """The panel of an attempt that ended badly."""
    bad = attempt.state in (State.FAILED, State.LOST, State.INCOMPLETE)
    found = excerpt(attempt.log_file) if bad else None
    return {
        "failed": bad,
        "ended_how": ended_how(attempt.exit_code, attempt.signal) if bad else "",
        "excerpt": found,
        "hints": hints(attempt, found.lines) if found else [],
    }


@require_safe
def log_lines(request: HttpRequest, pk: int) -> HttpResponse:
    """Whole log lines from a byte offset: HTML rows, or JSON with ``?format=json``."""
    attempt = _attempt(pk)
    level, text = level_of(request), _text(request)
    start, over = whole(request.GET, "from"), attempt.state not in ACTIVE
    part = (
        search_log(attempt.log_file, start, text=text, level=level, over=over)
        if text
        else read_log(attempt.log_file, start, level=level, over=over)
    )
    over = over and part.at_end
    if asks_json(request):
        lines = [
            {"offset": x.offset, "number": x.number, "time": x.time, "level": x.level,
             "text": x.text}
            for x in part.lines
        ]  # fmt: skip
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
    return get_object_or_404(
        Attempt.objects.select_related("stage__round__experiment__owner"), pk=pk
    )


def _text(request: HttpRequest) -> str:
    return request.GET.get("q", "").strip()[:LONGEST]
