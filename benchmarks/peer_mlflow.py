"""MLflow with the episodes of ``benchmarks.episodes``: ingest by its fastest path, then REST.

    PEERS_PYTHON -m benchmarks.peer_mlflow TRACES.jsonl FOLDER

Runs in an environment of its own with ``mlflow`` in it and nothing of ours. Spans go straight to
its SQLite store, those of many traces at once, far faster than by its tracing API; ``ANALYZE`` is
run before text is searched, without which a search of 20,000 traces gives no answer within five
minutes. Prints JSON.
"""

from __future__ import annotations

import json
import logging
import secrets
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.peer_server import median, served

NEEDLE, ABSENT, RARE, COMMON = "needle-1011", "needle-7301946582", "雪松", "水杯"
PAGE = 50
BATCH = 50  # traces whose spans are written at once
REPEATS = 9
SYSTEM = "You shop for a person."


def main() -> None:
    """Load, serve, ask, print."""
    traces, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    logging.disable(logging.WARNING)
    database = folder / "mlflow.db"
    figures = ingest(traces, database)
    with sqlite3.connect(database) as connection:
        connection.execute("ANALYZE")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    figures["disk_mb"] = sum(f.stat().st_size for f in folder.glob("mlflow.db*")) / 1e6
    print(json.dumps(figures | serve(database, folder)), flush=True)


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


def serve(database: Path, folder: Path) -> dict[str, float]:
    """Start its server, ask it, end it; medians in milliseconds."""

    def command(port: int) -> list[str]:
        server = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1"]
        store = ["--backend-store-uri", f"sqlite:///{database}", "--artifacts-destination"]
        return [*server, "--port", str(port), *store, str(folder)]

    with served(command, folder / "server.log", folder) as port:
        return ask(f"http://127.0.0.1:{port}")


def ask(address: str) -> dict[str, float]:
    """The questions of the table, by the API that its own pages use."""
    import mlflow
    import requests
    from mlflow import MlflowClient

    session = requests.Session()
    session.get(f"{address}/health", timeout=60).raise_for_status()
    mlflow.set_tracking_uri(address)
    client = MlflowClient(address)
    found = client.get_experiment_by_name("episodes")
    assert found is not None
    place = {
        "type": "MLFLOW_EXPERIMENT",
        "mlflow_experiment": {"experiment_id": found.experiment_id},
    }

    def search(condition: str) -> list[dict[str, Any]]:
        body: dict[str, Any] = {"locations": [place], "max_results": PAGE}
        body["order_by"] = ["timestamp_ms DESC"]
        if condition:
            body["filter"] = condition
        answer = session.post(f"{address}/api/3.0/mlflow/traces/search", json=body, timeout=300)
        answer.raise_for_status()
        traces: list[dict[str, Any]] = answer.json().get("traces", [])
        return traces

    newest = search("")
    names = [trace["trace_id"] for trace in newest]
    texts = {"own": NEEDLE, "absent": ABSENT, "rare": RARE, "common": COMMON}
    figures = {
        "list": median(lambda: search(""), REPEATS),
        "filter": median(lambda: search("tags.arm = 'bare' AND tags.success = '1'"), REPEATS),
        "open": median(lambda: client.get_trace(names[7]), REPEATS),
    }
    for kind, word in texts.items():
        figures[kind] = median(lambda word=word: search(f"trace.text LIKE '%{word}%'"), 5)  # type: ignore[misc]
    return figures


if __name__ == "__main__":
    main()
