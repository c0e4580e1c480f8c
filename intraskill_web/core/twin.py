"""Every page has a JSON twin: the same address with ``?format=json`` answers the same facts as
data.

A view computes once and calls ``page``; what a person sees and what a script reads cannot drift
apart. Tables have a CSV twin too (``?format=csv``).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson
from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from intraskill_web.core.parameters import choice
from intraskill_web.core.tables import Table

FORMATS = ("html", "json", "csv")


class Encoder(DjangoJSONEncoder):
    """Django's encoder with full microseconds and translated texts as strings."""

    def default(self, o: Any) -> Any:
        if isinstance(o, datetime):
            return o.isoformat()
        return super().default(o)


def asks_json(request: HttpRequest) -> bool:
    """Whether the answer is to be JSON."""
    return request.GET.get("format") == "json"


def page(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    data: Callable[[], Mapping[str, Any]],
    *,
    table: Table | None = None,
    status: int = 200,
) -> HttpResponse:
    """The HTML page, or the data behind it when ``?format=json`` (or ``csv``) asks for it.

    Raises ParameterError for a format that the page has not.
    """
    wanted = choice(request.GET, "format", ("html", "json") if table is None else FORMATS, "html")
    if wanted == "json":
        return json_response(data(), status=status)
    if wanted == "csv" and table is not None:
        return csv_response(table)
    response = render(request, template, dict(context), status=status)
    patch_vary_headers(response, ("Cookie", "Accept-Language"))
    return response


ENCODER = Encoder()
OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_NON_STR_KEYS


def json_response(data: Mapping[str, Any], *, status: int = 200) -> HttpResponse:
    """Readable UTF-8 JSON; non-ASCII text is not escaped, what is no finite number is null.

    The quick encoder refuses halves of surrogate pairs and integers beyond 64 bits.
    """
    try:
        text = orjson.dumps(dict(data), default=ENCODER.default, option=OPTIONS)
    except orjson.JSONEncodeError:
        return JsonResponse(
            dict(data),
            encoder=Encoder,
            json_dumps_params={"ensure_ascii": False, "indent": 2},
            status=status,
        )
    return HttpResponse(text, content_type="application/json", status=status)


def error_response(error: str, status: int) -> HttpResponse:
    """A refusal as data, the same for every address."""
    return json_response({"ok": False, "error": error}, status=status)


def refused(request: HttpRequest, errors: Sequence[str]) -> HttpResponse:
    """Status 400 where a file was asked for, in the words of the errors: as data or as text."""
    if asks_json(request):
        return error_response("; ".join(errors), 400)
    return HttpResponse("\n".join(errors), status=400, content_type="text/plain; charset=utf-8")


def csv_response(table: Table) -> HttpResponse:
    """The table as UTF-8 CSV, full precision, with a header line."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([column.key for column in table.columns])
    for row in table.rows:
        writer.writerow([safe_cell(row.get(column.key)) for column in table.columns])
    response = HttpResponse(text.getvalue(), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{table.name}.csv"'
    return response


def safe_cell(value: object) -> object:
    """``value`` for a spreadsheet: text that would run as a formula is quoted."""
    if value is None:
        return ""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value
    return value
