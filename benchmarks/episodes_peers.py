"""The same episodes and the same questions in ours, MLflow and Inspect: over HTTP, on one machine.

Peers live in a Python of their own (``--peers PATH/bin/python``, with mlflow, inspect-ai and
requests in it). Without one their figures are those of an earlier run, of another machine in
another hour, and say so.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from benchmarks.episodes_requests import QUESTIONS, percentile
from benchmarks.episodes_work import episode
from benchmarks.peer_server import served, times

ROOT = Path(__file__).resolve().parents[1]
REPEATS = 40
# MLflow 3.17.2 and Inspect 0.3.285 on episodes of the same size, 29 November 2026 (README.md)
EARLIER: dict[str, dict[str, Any]] = {
    "mlflow": {
        "version": "3.17.2, earlier", "turns_per_s": 240.0, "disk_mb": 552.0, "list": 12.0,
        "filter": 70.0, "own": 413.0, "rare": 88.0, "common": 14.0, "open": 17.0,
    },
    "inspect": {
        "version": "0.3.285, earlier", "turns_per_s": 2430.0, "disk_mb": 97.0, "list": 10.8,
        "own": 18_600.0, "open": 2.6,
    },
}  # fmt: skip


def peers(python: str | None, folder: Path, count: int) -> dict[str, dict[str, Any]]:
    """What both peers make of the first ``count`` episodes, side by side."""
    if python is None:
        return EARLIER
    folder.mkdir(parents=True, exist_ok=True)
    traces = folder / "traces.jsonl"
    with traces.open("wb") as handle:
        for number in range(count):
            handle.write(orjson.dumps(episode(number)) + b"\n")
    try:
        with ThreadPoolExecutor(2) as pool:
            names = ("mlflow", "inspect")
            made = pool.map(lambda name: _peer(python, name, traces, folder), names)
            return dict(zip(names, made, strict=True))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _peer(python: str, name: str, traces: Path, folder: Path) -> dict[str, Any]:
    environment = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", "PYTHONPATH": str(ROOT)}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    done = subprocess.run(
        [python, "-m", f"benchmarks.peer_{name}", str(traces), str(folder / name)],
        stdout=subprocess.PIPE, text=True, check=True, cwd=folder, env=environment,
    )  # fmt: skip
    figures: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


def ours(cookie: str, cookie_name: str, folder: Path) -> dict[str, float]:
    """The questions to our server as it is deployed: medians and 95th percentiles in ms."""

    def command(port: int) -> list[str]:
        web = [sys.executable, "-m", "gunicorn", "intraskill_web.wsgi", "--threads", "6"]
        return [*web, "--bind", f"127.0.0.1:{port}", "--log-level", "warning"]

    with served(command, folder / "server.log", ROOT) as port:
        return _ask(port, {"Cookie": f"{cookie_name}={cookie}"})


def _ask(port: int, headers: dict[str, str]) -> dict[str, float]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    figures = {}
    for kind, question in QUESTIONS.items():

        def get(kind: str = kind, address: str = quote(question, safe="/?&=")) -> None:
            connection.request("GET", address, headers=headers)
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == 200 and body.startswith(b"{"), (kind, answer.status)

        taken = times(get, REPEATS)
        figures[kind], figures[f"{kind}_p95"] = percentile(taken, 50), percentile(taken, 95)
    return figures
