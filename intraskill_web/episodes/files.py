"""The files that were read into episodes, and the lines in them that are none."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from intraskill_web.core.tables import Column, Table
from intraskill_web.core.twin import page
from intraskill_web.episodes.models import BadLine, IngestedFile

MOST = 500


@require_safe
def files(request: HttpRequest) -> HttpResponse:
    """The files read last, with their unreadable lines."""
    rows = IngestedFile.objects.select_related("experiment").exclude(path__endswith="metrics.jsonl")
    read = [_file(row) for row in rows.order_by("-read_at", "-pk")[:MOST]]
    bad = [_bad(row) for row in BadLine.objects.select_related("file__experiment")[:MOST]]
    columns = [
        Column("experiment", _("Experiment")),
        Column("path", _("File"), "mono"),
        Column("lines", _("Lines"), "count"),
        Column("bad_lines", _("Unreadable"), "count"),
        Column("size", _("Bytes read"), "count"),
    ]
    table = Table("episode-files", columns, read)
    bad_columns = [
        Column("file", _("File"), "mono"),
        Column("line", _("Line"), "count"),
        Column("reason", _("Why")),
        Column("excerpt", _("Begins with"), "mono"),
    ]
    context = {
        "section": "episodes",
        "table": table,
        "bad": Table("unreadable-lines", bad_columns, bad),
    }
    data = {"files": table.data(), "unreadable": bad}
    return page(request, "episodes/files.html", context, lambda: data, table=table)


def _file(row: IngestedFile) -> dict[str, Any]:
    return {
        "experiment": row.experiment.name,
        "path": row.path,
        "lines": row.lines,
        "bad_lines": row.bad_lines,
        "size": row.size,
    }


def _bad(row: BadLine) -> dict[str, Any]:
    return {
        "experiment": row.file.experiment.name,
        "file": row.file.path,
        "line": row.line + 1,
        "reason": row.reason,
        "excerpt": row.excerpt,
    }
