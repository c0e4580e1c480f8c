"""Several workers behave as one service, and survive the death of one."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.shop.service.crowd import at_once, one_by_one
from tests.trainer.shop.service.lossy import LossyProxy
from trainer.shop.client import ShopClient, ShopServiceError
from trainer.shop.world import load_world


def start() -> tuple[subprocess.Popen[str], str]:
    """A service of two workers, and its address."""
    command = [sys.executable, "-m", "trainer", "shop", "serve", "--port", "0"]
    command += ["--workers", "2", "--slots", "6", "--reset-wait", "2", "--profile", "standard"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    address = json.loads(process.stdout.readline())["address"]
    wait_until_ready(address)
    return process, address


@pytest.fixture
def serving() -> Iterator[tuple[subprocess.Popen[str], str]]:
    process, address = start()
    yield process, address
    process.terminate()
    assert process.wait(15) == 0


def wait_until_ready(address: str) -> dict[str, Any]:
    for _ in range(150):
        try:
            with urllib.request.urlopen(f"{address}/healthz") as answer:
                health: dict[str, Any] = json.load(answer)
        except OSError:
            health = {"ready": False}
        if health["ready"]:
            return health
        time.sleep(0.1)
    raise AssertionError("the service did not become ready")


def worker_processes(parent: int) -> list[int]:
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    return [int(pid) for pid in children.split()]


@pytest.mark.chaos
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_two_workers_serve_all_slots_and_a_killed_one_comes_back(
    serving: tuple[subprocess.Popen[str], str],
) -> None:
    process, address = serving
    clients = [ShopClient(address) for _ in range(6)]
    replies = [client.reset(number) for number, client in enumerate(clients)]
    assert sorted(reply["env_idx"] for reply in replies) == [0, 1, 2, 3, 4, 5]
    for client in clients:
        page = client.step("search[台灯]")["observation_state"]["page_type"]
        assert page == "search_results"
    assert wait_until_ready(address)["free_slots"] == 0

    os.kill(worker_processes(process.pid)[0], signal.SIGKILL)
    time.sleep(0.5)
    health = wait_until_ready(address)
    assert (health["environment_slots"], health["free_slots"]) == (6, 3)
    lost = 0
    for client in clients:
        try:
            client.step("click[back to search]")
        except ShopServiceError as error:
            lost += 1
            assert error.code in ("lease_expired", "stale_lease")
    assert lost == 3
    for client in clients:
        try:
            client.close()
        except ShopServiceError as error:
            assert error.code in ("lease_expired", "stale_lease")
    assert wait_until_ready(address)["free_slots"] == 6


def test_two_workers_a_line_that_loses_replies_and_few_slots_change_no_episode(
    serving: tuple[subprocess.Popen[str], str],
) -> None:
    draws = random.Random(5)
    proxy = LossyProxy(serving[1], lambda: draws.random() < 0.03)
    world = load_world("standard")
    assert at_once(proxy.address, world) == one_by_one(world)
    assert proxy.lost > 20
    assert wait_until_ready(serving[1])["free_slots"] == 6
    proxy.stop()


@pytest.mark.chaos
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_workers_end_when_their_supervisor_is_killed() -> None:
    process, address = start()
    workers = worker_processes(process.pid)
    assert len(workers) == 2
    process.kill()
    process.wait(15)
    for _ in range(200):
        if not any(map(is_serving, workers)):
            break
        time.sleep(0.1)
    assert not any(is_serving(pid) for pid in workers)
    with pytest.raises(OSError):
        urllib.request.urlopen(f"{address}/healthz", timeout=5)


def is_serving(pid: int) -> bool:
    """Whether the process runs; an orphan that nobody waits for may stay as a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
