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
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from benchmarks.episodes_requests import QUESTIONS, percentile
from benchmarks.episodes_work import episode

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
    script = ROOT / "benchmarks" / f"peer_{name}.py"
    environment = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    done = subprocess.run(
        [python, str(script), str(traces), str(folder / name)],
        stdout=subprocess.PIPE, text=True, check=True, cwd=folder, env=environment,
    )  # fmt: skip
    figures: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


def ours(cookie: str, cookie_name: str) -> dict[str, float]:
    """The questions to our server as it is deployed: medians and 95th percentiles in ms."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "gunicorn", "intraskill_web.wsgi", "--threads", "6"]
    command += ["--bind", f"127.0.0.1:{port}", "--log-level", "warning"]
    server = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    try:
        return _ask(port, {"Cookie": f"{cookie_name}={cookie}"})
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


def _ask(port: int, headers: dict[str, str]) -> dict[str, float]:
    for _ in range(120):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            time.sleep(0.25)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    figures = {}
    for kind, address in QUESTIONS.items():
        times = []
        for _ in range(REPEATS):
            begun = time.perf_counter()
            connection.request("GET", quote(address, safe="/?&="), headers=headers)
            answer = connection.getresponse()
            body = answer.read()
            times.append((time.perf_counter() - begun) * 1000)
            assert answer.status == 200 and body.startswith(b"{"), (kind, answer.status)
        figures[kind] = percentile(times, 50)
        figures[f"{kind}_p95"] = percentile(times, 95)
    return figures
