"""MLflow with the episodes of ``benchmarks.episodes``: ingest by its fastest path; its questions.

    PEERS_PYTHON -m benchmarks.peer_mlflow TRACES.jsonl FOLDER

fills a store and prints JSON, in an environment of its own with ``mlflow`` in it and nothing of
ours. Spans go straight to its SQLite store, those of many traces at once, far faster than by its
tracing API; ``ANALYZE`` is run before text is searched, without which a search of 20,000 traces
gives no answer within five minutes.
"""

from __future__ import annotations

import json
import logging
import secrets
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.peer_server import Line, Question

DATABASE = "mlflow.db"
PAGE = 50
BATCH = 50  # traces whose spans are written at once
SYSTEM = "You shop for a person."


def main() -> None:
    """Load and print."""
    traces, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    logging.disable(logging.WARNING)
    database = folder / DATABASE
    figures = ingest(traces, database)
    with sqlite3.connect(database) as connection:
        connection.execute("ANALYZE")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    figures["disk_mb"] = sum(f.stat().st_size for f in folder.glob(f"{DATABASE}*")) / 1e6
    print(json.dumps(figures), flush=True)


def episodes(traces: Path) -> Iterator[dict[str, Any]]:
    """The traces, one a line."""
    with traces.open() as lines:
        yield from map(json.loads, lines)


def ingest(traces: Path, database: Path) -> dict[str, Any]:
    """All episodes as traces with a span a message; turns a second."""
    import mlflow
    from mlflow.tracking._tracking_service.utils import _get_store

    uri = f"sqlite:///{database}"
    mlflow.set_tracking_uri(uri)
    experiment = mlflow.set_experiment("episodes").experiment_id
    store, turns, begun = _get_store(uri), 0, time.monotonic()
    waiting: list[Any] = []
    for number, trace in enumerate(episodes(traces)):
        info, spans = converted(trace, experiment)
        store.start_trace(info)
        waiting += spans
        turns += len(trace["steps"])
        if number % BATCH == BATCH - 1:
            store.log_spans(experiment, waiting)
            waiting = []
        if number % 2000 == 1999:
            pace = turns / (time.monotonic() - begun)
            print(
                f"[mlflow] {number + 1:,} traces, {pace:,.0f} turns/s", file=sys.stderr, flush=True
            )
    if waiting:
        store.log_spans(experiment, waiting)
    return {"version": mlflow.__version__, "turns_per_s": turns / (time.monotonic() - begun)}


def converted(trace: dict[str, Any], experiment: str) -> tuple[Any, list[Any]]:
    """A trace in MLflow's terms: its info with tags, and its spans."""
    from mlflow.entities import TraceInfo, TraceLocation, TraceState
    from mlflow.entities.span import Span
    from mlflow.tracing.utils import build_otel_context
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan

    number, begun = secrets.randbits(128), time.time_ns()
    resource = Resource.get_empty()  # detecting one for each span takes most of the time
    name = f"tr-{number:032x}"
    spans: list[Any] = []

    def span(title: str, kind: str, parent: Any, inputs: Any, outputs: Any) -> Any:
        context = build_otel_context(number, secrets.randbits(64))
        attributes = {
            "mlflow.traceRequestId": json.dumps(name),
            "mlflow.spanType": json.dumps(kind),
        }
        for key, value in (("mlflow.spanInputs", inputs), ("mlflow.spanOutputs", outputs)):
            if value is not None:
                attributes[key] = json.dumps(value, ensure_ascii=False)
        at = begun + len(spans)
        read = ReadableSpan(
            name=title, context=context, parent=parent, start_time=at, end_time=at + 10**6,
            attributes=attributes, resource=resource,
        )  # fmt: skip
        spans.append(Span(read))
        return context

    final, wish = trace["final"] or {}, trace["reset"]["task_instruction"]
    reward = final.get("reward")
    root = span("episode", "AGENT", None, {"system": SYSTEM, "user": wish}, {"reward": reward})
    for step in trace["steps"]:
        model = step["model"]
        call = model["tool_calls"][0]
        said = {"role": "assistant", "content": model["content"], "tool_calls": [call]}
        span("policy", "CHAT_MODEL", root, None, said)
        span(call["name"], "TOOL", root, call["arguments"], step["environment"]["observation"])
    tags = {
        "arm": trace["provenance"]["skills"]["assignment"]["mode"],
        "checkpoint": trace["provenance"]["model"]["checkpoint_id"],
        "task": str(trace["job"]["task_id"]),
        "success": str(int(reward == 1.0)),
        "end": final.get("termination_reason", "error"),
    }
    info = TraceInfo(
        trace_id=name, trace_location=TraceLocation.from_experiment_id(experiment),
        request_time=begun // 10**6, state=TraceState.OK, execution_duration=1,
        request_preview=wish[:200], response_preview=str(reward), tags=tags, trace_metadata={},
    )  # fmt: skip
    return info, spans


def command(python: str, folder: Path, port: int) -> list[str]:
    """Its server over a filled folder."""
    server = [python, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
    store = ["--backend-store-uri", f"sqlite:///{folder / DATABASE}"]
    return [*server, *store, "--artifacts-destination", str(folder)]


def questions(line: Line, words: Mapping[str, str]) -> dict[str, Question]:
    """What its pages ask by their API: lists, ``words`` by kind of question, and a trace."""
    found = json.loads(line.get("/api/2.0/mlflow/experiments/get-by-name?experiment_name=episodes"))
    place = {
        "type": "MLFLOW_EXPERIMENT",
        "mlflow_experiment": {"experiment_id": found["experiment"]["experiment_id"]},
    }

    def search(condition: str) -> Question:
        body: dict[str, Any] = {"locations": [place], "max_results": PAGE}
        body |= {"order_by": ["timestamp_ms DESC"], "filter": condition}
        sent = json.dumps(body).encode()
        return lambda: line.post("/api/3.0/mlflow/traces/search", sent)

    newest: Any = search("")()
    trace = json.loads(newest)["traces"][7]["trace_id"]

    def one() -> bytes:
        return line.get(f"/api/3.0/mlflow/traces/get?trace_id={trace}")

    return {
        "list": search(""),
        "filter": search("tags.arm = 'bare' AND tags.success = '1'"),
        **{kind: search(f"trace.text LIKE '%{word}%'") for kind, word in words.items()},
        **dict.fromkeys(("open", "open_next"), one),
    }


if __name__ == "__main__":
    main()
