"""The same episodes and the same questions in ours, MLflow and Inspect: over HTTP, on one machine.

Peers live in a Python of their own (``--peers PATH/bin/python``, with mlflow and inspect-ai in it).
All are served at once and asked in turns, over a connection each that stays open. Without such a
Python their figures are those of an earlier run, of another machine in another hour, and say so.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from benchmarks import peer_inspect, peer_mlflow
from benchmarks.episodes_requests import QUESTIONS, WORDS, percentile
from benchmarks.episodes_work import episode
from benchmarks.peer_server import Line, Question, in_turns, served

WORKER = "intraskill_web.serving.LingeringWorker"
ROOT = Path(__file__).resolve().parents[1]
REPEATS, SECONDS = 200, 20.0  # of one question, whichever is over first
OURS = "ours"
PEERS = ("mlflow", "inspect")
# MLflow 3.17.2 and Inspect 0.3.285 on episodes of the same size, 29 November 2026 (README.md)
EARLIER: dict[str, dict[str, Any]] = {
    "mlflow": {
        "version": "3.17.2, earlier", "turns_per_s": 240.0, "disk_mb": 552.0, "list": 12.0,
        "filter": 70.0, "own": 413.0, "rare": 88.0, "common": 14.0, "open": 17.0,
        "open_next": 17.0,
    },
    "inspect": {
        "version": "0.3.285, earlier", "turns_per_s": 2430.0, "disk_mb": 97.0, "list": 10.8,
        "own": 18_600.0, "open_next": 2.6,
    },
}  # fmt: skip


Figures = dict[str, Any]


def compared(
    python: str | None, cookie: Mapping[str, str], folder: Path, count: int
) -> dict[str, Figures]:
    """Figures by who was asked: milliseconds by question, and what filling took of peers.

    ``cookie`` is that of a user of ours, whose database holds the first ``count`` episodes.
    """
    if python is None:
        return _asked(None, cookie, folder) | EARLIER
    stores = folder / "peers"
    stores.mkdir(parents=True, exist_ok=True)
    try:
        filled = _filled(python, stores, count)
        asked = _asked(python, cookie, folder)
        return {name: filled.get(name, {}) | asked[name] for name in asked}
    finally:
        shutil.rmtree(stores, ignore_errors=True)


def _filled(python: str, stores: Path, count: int) -> dict[str, Figures]:
    """Both peers with the episodes, side by side; each has a core."""
    traces = stores / "traces.jsonl"
    with traces.open("wb") as handle:
        for number in range(count):
            handle.write(orjson.dumps(episode(number)) + b"\n")

    def fill(name: str) -> Figures:
        done = subprocess.run(
            [python, "-m", f"benchmarks.peer_{name}", str(traces), str(stores / name)],
            stdout=subprocess.PIPE, text=True, check=True, cwd=stores, env=_environment(),
        )  # fmt: skip
        figures: Figures = json.loads(done.stdout.strip().splitlines()[-1])
        return figures

    with ThreadPoolExecutor(len(PEERS)) as pool:
        return dict(zip(PEERS, pool.map(fill, PEERS), strict=True))


def _asked(python: str | None, cookie: Mapping[str, str], folder: Path) -> dict[str, Figures]:
    """Medians and 95th percentiles of everybody's answers."""
    with ExitStack() as stack:
        port = stack.enter_context(served(_web, folder / "server.log", ROOT))
        sent = "; ".join(f"{name}={value}" for name, value in cookie.items())
        line = Line(port, {"Cookie": sent})
        everybody = {OURS: {kind: _own(line, path) for kind, path in QUESTIONS.items()}}
        if python is not None:
            everybody |= _of_peers(python, folder / "peers", stack)
        figures: dict[str, Figures] = {name: {} for name in everybody}
        for kind in QUESTIONS:
            asked = {name: have[kind] for name, have in everybody.items() if kind in have}
            for name, taken in in_turns(asked, repeats=REPEATS, seconds=SECONDS).items():
                figures[name][kind] = percentile(taken, 50)
                figures[name][f"{kind}_p95"] = percentile(taken, 95)
        return figures


def _of_peers(python: str, stores: Path, stack: ExitStack) -> dict[str, dict[str, Question]]:
    lines = {}
    for name, peer in zip(PEERS, (peer_mlflow, peer_inspect), strict=True):

        def command(port: int, peer: Any = peer, store: Path = stores / name) -> list[str]:
            words: list[str] = peer.command(python, store, port)
            return words

        log = stores / f"{name}.log"
        lines[name] = Line(stack.enter_context(served(command, log, stores, _environment())))
    return {
        "mlflow": peer_mlflow.questions(lines["mlflow"], WORDS),
        "inspect": peer_inspect.questions(lines["inspect"]),
    }


def _web(port: int) -> list[str]:
    """Our server as it is deployed."""
    web = [sys.executable, "-m", "gunicorn", "intraskill_web.wsgi", "--worker-class", WORKER]
    return [*web, "--threads", "6", "--bind", f"127.0.0.1:{port}", "--log-level", "warning"]


def _own(line: Line, path: str) -> Question:
    address = quote(path, safe="/?&=")
    return lambda: line.get(address)


def _environment() -> dict[str, str]:
    """That of a peer's Python, which finds the benchmarks and nothing else of ours."""
    environment = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    return environment | {"PYTHONPATH": str(ROOT)}
