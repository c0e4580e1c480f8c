"""Export of exactly one list, every page of it: CSV, JSON lines or Parquet, streamed.

The private goal and the bodies are in none of them. Rows are read in pieces by key, so an export of
any size takes the memory of one piece.
"""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase, StreamingHttpResponse
from django.views.decorators.http import require_safe

from intraskill_web.core.twin import Encoder, refused, safe_cell
from intraskill_web.episodes.candidates import take
from intraskill_web.episodes.filters import EpisodeFilter
from intraskill_web.episodes.glance import Glance
from intraskill_web.episodes.list_data import columns, episode_data
from intraskill_web.episodes.listed import LISTED, Listed
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.order import Key, Order

PIECE = 1000
BLOCK = 2**20
KINDS = ("csv", "jsonl", "parquet")
TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}


@require_safe
def export(request: HttpRequest, kind: str) -> HttpResponseBase:
    """The whole list of an address as a file."""
    if kind not in KINDS:
        raise Http404
    filter_, order = EpisodeFilter.of(request.GET), Order.of(request.GET.get("sort", ""))
    filter_.refuse_unknown()
    filter_.errors.extend(Order.problems(request.GET.get("sort", "")))
    if filter_.errors:
        return refused(request, filter_.errors)
    pieces = _hits(filter_, order) if filter_.words else _pieces(filter_, order)
    parts = {"csv": _csv, "jsonl": _jsonl, "parquet": _parquet}[kind](pieces)
    response: HttpResponseBase = StreamingHttpResponse(parts, content_type=TYPES[kind])
    response["Content-Disposition"] = f'attachment; filename="episodes.{kind}"'
    return response


def _pieces(filter_: EpisodeFilter, order: Order) -> Iterator[list[dict[str, Any]]]:
    """The rows of the list as data, some at a time, in its order."""
    for piece in _taken(filter_, order):
        yield list(episode_data(piece))


def _hits(filter_: EpisodeFilter, order: Order) -> Iterator[list[dict[str, Any]]]:
    """The same of a search: candidates that hold the words, by a column sorted once."""
    with Glance(filter_.words) as glance:
        for piece in _sorted(filter_, order) if order.column else _taken(filter_, order):
            yield list(episode_data(row for row in piece if glance.hit(row) is not None))


def _taken(filter_: EpisodeFilter, order: Order) -> Iterator[list[Listed]]:
    key: Key | None = None
    while True:
        piece = take(filter_, LISTED, order, key, wanted=PIECE)
        yield piece
        if len(piece) < PIECE:
            return
        key = order.key(piece[-1])


def _sorted(filter_: EpisodeFilter, order: Order) -> Iterator[list[Listed]]:
    rows = order.rows(filter_.apply(LISTED), None).iterator(chunk_size=PIECE)
    while piece := list(islice(rows, PIECE)):
        yield piece


def _csv(pieces: Iterable[list[dict[str, Any]]]) -> Iterator[bytes]:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns())
    for piece in pieces:
        for row in piece:
            flat = row | {"skill_ids": " ".join(map(str, row["skill_ids"]))}
            writer.writerow([safe_cell(flat[name]) for name in columns()])
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()


def _jsonl(pieces: Iterable[list[dict[str, Any]]]) -> Iterator[bytes]:
    for piece in pieces:
        lines = (json.dumps(row, cls=Encoder, ensure_ascii=False) + "\n" for row in piece)
        yield "".join(lines).encode()


def _parquet(pieces: Iterable[list[dict[str, Any]]]) -> Iterator[bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, _type(name, pa)) for name in columns()])
    with tempfile.TemporaryFile() as file:  # its index is written last, so it is not streamed
        with pq.ParquetWriter(file, schema, compression="zstd") as writer:
            for piece in pieces:
                writer.write_table(pa.Table.from_pylist(piece, schema=schema))
        file.seek(0)
        yield from iter(partial(file.read, BLOCK), b"")


def _type(name: str, pa: Any) -> Any:
    """The column type, from the model's field; lists of ids stay lists."""
    if name == "skill_ids":
        return pa.list_(pa.string())
    kinds = {
        "BigAutoField": pa.int64(), "PositiveIntegerField": pa.int64(),
        "PositiveSmallIntegerField": pa.int64(), "FloatField": pa.float64(),
        "BooleanField": pa.bool_(),
    }  # fmt: skip
    if name == "round":
        return pa.int64()
    if name in ("experiment", "url"):
        return pa.string()
    return kinds.get(Episode._meta.get_field(name).get_internal_type(), pa.string())
