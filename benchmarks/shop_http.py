"""Load for the shop service: many clients on one event loop, each over its own connection.

The clients speak plain HTTP/1.1 over asyncio streams, because the load must not cost more than
what it measures. Each plays episodes without end: reset, search, open a product, walk back, open
again."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from benchmarks.shop_work import Figure, figure, percentile

_QUERIES = (
    "台灯 护眼",
    "电风扇 静音 遥控",
    "运动鞋 透气",
    "保温杯 500ml",
    "desk lamp",
    "书架 多层",
)


@contextmanager
def service(archive: Path, clients: int, workers: int) -> Iterator[tuple[str, int]]:
    """A service of its own; yields its address and process id."""
    command = [sys.executable, "-m", "trainer", "shop", "serve", "--profile", "compat"]
    command += ["--catalogue", str(archive), "--port", "0", "--slots", str(clients)]
    command += ["--workers", str(workers)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ})
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["address"], process.pid
    finally:
        process.terminate()
        process.wait(20)


class Client:
    """One connection and its lease."""

    def __init__(self, address: str, seed: int) -> None:
        parts = urlsplit(address)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._random = random.Random(seed)
        self.took: list[float] = []

    async def connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port)

    async def call(self, **request: Any) -> dict[str, Any]:
        body = json.dumps(request, ensure_ascii=False).encode()
        head = f"POST /api/shop_agent HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        headers = await self._reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in headers.lower().split(b"\r\n")
            if line.startswith(b"content-length")
        )
        answer = await self._reader.readexactly(length)
        if not headers.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(answer.decode())
        result: dict[str, Any] = orjson.loads(answer)["result"]
        return result

    async def play(self, until: float) -> None:
        """Episodes until the clock says stop; each step's seconds are kept."""
        while time.perf_counter() < until:
            reply = await self.call(action="reset", idx=self._random.choice(self.tasks))
            lease = {"env_idx": reply["env_idx"], "lease_id": reply["lease_id"]}
            reply = await self._step(lease, f"search[{self._random.choice(_QUERIES)}]")
            for _ in range(6):
                listed = [row["asin"] for row in reply["observation_state"]["products"]]
                await self._step(lease, f"click[{self._random.choice(listed)}]")
                reply = await self._step(lease, "click[< prev]")
            await self.call(action="release_one", **lease)

    tasks: tuple[int, ...] = ()

    async def _step(self, lease: dict[str, Any], text: str) -> dict[str, Any]:
        started = time.perf_counter()
        reply = await self.call(action="interact", response=text, **lease)
        self.took.append(time.perf_counter() - started)
        return reply


async def _load(address: str, clients: int, seconds: float, tasks: tuple[int, ...]) -> list[float]:
    crowd = [Client(address, seed) for seed in range(clients)]
    for client in crowd:
        client.tasks = tasks
        await client.connect()
    until = time.perf_counter() + seconds
    await asyncio.gather(*(client.play(until) for client in crowd))
    return [took for client in crowd for took in client.took]


def measure(
    archive: Path, tasks: tuple[int, ...], *, clients: int, workers: int, seconds: float
) -> dict[str, Figure]:
    """Steps a second over HTTP, their latency as the clients see it, and the processor time that
    the service spends on a step (its share of resets and releases included)."""
    with service(archive, clients, workers) as (address, process):
        asyncio.run(_load(address, clients, min(1.0, seconds), tasks))
        started, spent = time.perf_counter(), _processor_seconds(process)
        took = asyncio.run(_load(address, clients, seconds, tasks))
        elapsed = time.perf_counter() - started
        spent = _processor_seconds(process) - spent
    return {
        "http_step_cpu_us": figure(spent / len(took) * 1e6, "us"),
        "http_steps_per_s": figure(len(took) / elapsed, "1/s"),
        "http_step_p50_ms": figure(percentile(took, 50) * 1e3, "ms"),
        "http_step_p95_ms": figure(percentile(took, 95) * 1e3, "ms"),
    }


def _processor_seconds(process: int) -> float:
    """Processor time of a process and of its children that run."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ticks = 0
    for pid in (process, *children):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
