"""What a worker writes about its machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.conf import settings
from django.db import DatabaseError, connection

from jobs import hosts, placement
from jobs.models import Host

QUEUES = ["stages:here:gpu", "stages:here:cpu"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _home(home: Path) -> None:
    """Disk space is that of the test's home."""


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A driver's tool that says what its file holds."""
    folder = tmp_path / "bin"
    folder.mkdir()
    tool = folder / "nvidia-smi"
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    tool.write_text("#!/bin/sh\necho '0, NVIDIA H200, 143771, 512'\necho '1, Odd, [N/A], 7'\n")
    tool.chmod(0o755)
    return tool


def test_a_worker_registers_its_machine(smi: Path) -> None:
    hosts.Registration("here.1", QUEUES).begin()
    host = Host.objects.get()
    assert host.name == settings.INTRASKILL_HOST_NAME and host.is_up
    assert host.gpus == [
        {"index": 0, "name": "NVIDIA H200", "memory_bytes": 143771 * 2**20,
         "used_bytes": 512 * 2**20},
        {"index": 1, "name": "Odd", "memory_bytes": None, "used_bytes": 7 * 2**20},
    ]  # fmt: skip
    assert host.free_disk_bytes > 0 and host.memory_bytes > 2**28 and host.cpus >= 1
    assert host.versions["python"] and host.versions["django"]
    assert host.queues == sorted(QUEUES)
    [worker] = host.workers
    assert (worker["name"], worker["pid"]) == ("here.1", os.getpid())


def test_a_machine_without_a_driver_has_no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert hosts.seen_gpus() == []


def test_a_driver_that_fails_takes_no_gpu_off_the_record(smi: Path) -> None:
    registration = hosts.Registration("here.1", QUEUES)
    registration.begin()
    smi.write_text("#!/bin/sh\nexit 9\n")
    registration.beat()
    assert len(Host.objects.get().gpus) == 2


def test_workers_that_died_without_a_word_are_dropped(smi: Path) -> None:
    hosts.Registration("here.1", QUEUES).begin()
    host = Host.objects.get()
    host.workers = [{"name": "dead", "pid": 2**22 - 1, "started": "boot:0:1", "queues": ["x"]}]
    host.save()
    hosts.Registration("here.2", QUEUES).begin()
    host.refresh_from_db()
    assert [row["name"] for row in host.workers] == ["here.2"]
    assert "x" not in host.queues


def test_the_last_worker_that_ends_leaves_the_host_down(smi: Path) -> None:
    registration = hosts.Registration("here.1", QUEUES)
    registration.begin()
    registration.end()
    host = Host.objects.get()
    assert host.workers == [] and not host.is_up
    assert placement.hosts_up() == []


def test_a_heartbeat_is_written_at_most_every_ten_seconds(
    smi: Path,
) -> None:
    registration = hosts.Registration("here.1", QUEUES)
    registration.beat()
    seen = Host.objects.get().seen_at
    registration.beat()
    assert Host.objects.get().seen_at == seen


def test_a_database_that_does_not_answer_ends_no_worker(
    smi: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def write(*_arguments: object, **_named: object) -> None:
        raise DatabaseError("database is locked")

    monkeypatch.setattr(hosts, "write", write)
    hosts.Registration("here.1", QUEUES).beat()
    assert "database is locked" in caplog.text


def test_a_registration_leaves_no_connection_that_a_fork_could_inherit(smi: Path) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("an in-memory database has one connection for all")
    hosts.Registration("here.1", QUEUES).beat()
    assert connection.connection is None
