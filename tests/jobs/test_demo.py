"""The whole loop through a real queue and a real worker, undisturbed and disturbed.

Both runs are real processes in their own homes; the disturbed one must come to the same documents.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]
ARGUMENTS = ("demo", "--quick", "--rounds", "1", "--seed", "7", "--wait", "--json")
LIMIT_S = 400.0
STAGES = ["freeze", "train", "analyse", "validate", "gate", "select"]


@dataclass
class Demo:
    """A running ``manage.py demo`` in its own home."""

    home: Path
    process: subprocess.Popen[str]
    killed: list[str] = field(default_factory=list)

    @classmethod
    def start(cls, home: Path) -> Demo:
        home.mkdir(parents=True, exist_ok=True)
        environment = {
            **{k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "REDIS_URL")},
            "INTRASKILL_HOME": str(home),
            "DJANGO_SETTINGS_MODULE": "intraskill_web.settings",
        }
        with (home / "stderr").open("w") as errors, (home / "stdout").open("w") as output:
            process = subprocess.Popen(
                [sys.executable, "manage.py", *ARGUMENTS],
                cwd=ROOT, env=environment, stdout=output, stderr=errors, text=True,
            )  # fmt: skip
        return cls(home, process)

    def finish(self) -> list[dict[str, Any]]:
        """The lines it printed; fails with its messages when it did not succeed."""
        code = self.process.wait(LIMIT_S)
        output = (self.home / "stdout").read_text()
        assert code == 0, output + (self.home / "stderr").read_text()
        return [json.loads(line) for line in output.splitlines()]

    def until(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            assert self.process.poll() is None, f"ended before {what}"
            assert time.monotonic() < deadline, f"never saw {what}"
            time.sleep(0.05)

    def until_file(self, name: str) -> None:
        path = self.home / "runs" / "quick-7" / "round-000" / name
        self.until(path.exists, name)

    def service(self, name: str) -> psutil.Process:
        """A service of this home's supervisor."""
        record = json.loads((self.home / "instance.json").read_text())
        return psutil.Process(record["children"][name]["pid"])

    def kill_trainer(self) -> None:
        """Kill the method's process, found by its environment; its keeper lives."""

        def trainers() -> list[psutil.Process]:
            return [p for p in mine(self.home) if "-m trainer" in p[1] and "keeper" not in p[1]]

        self.until(trainers, "a trainer")
        for process, _command in trainers():
            process.kill()
        self.killed.append("trainer")

    def kill_worker(self) -> None:
        """Kill the worker and its work-horse; the trainer lives on."""
        worker = self.service("worker")
        horses = [p for p in worker.children() if p.is_running()]
        for process in (*horses, worker):
            process.kill()
        self.killed.append("worker")

    def kill_service(self, name: str) -> None:
        self.service(name).kill()
        self.killed.append(name)


def mine(home: Path) -> list[tuple[psutil.Process, str]]:
    """Every living process that works for ``home``, with its command line."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("INTRASKILL_HOME") != str(home):
                continue
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append((process, " ".join(process.cmdline())))
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("homes")
    yield folder
    for home in folder.iterdir():
        for process, _command in mine(home):
            process.kill()


@pytest.fixture(scope="module")
def undisturbed(homes: Path) -> list[dict[str, Any]]:
    return Demo.start(homes / "undisturbed").finish()


@pytest.mark.slow
def test_the_demo_prints_a_line_a_stage_and_a_summary(undisturbed: list[dict[str, Any]]) -> None:
    *stages, summary = undisturbed
    assert [line["stage"] for line in stages] == STAGES
    assert {(line["round"], line["status"]) for line in stages} == {(0, "succeeded")}
    assert summary["summary"] is True and summary["experiment"] == "quick-7"
    [round_] = summary["rounds"]
    assert round_["bank_size"] == 10
    assert len(round_["state_id"]) == 64
    assert 0 <= round_["bare_success"] <= 1 and 0 <= round_["full_success"] <= 1
    assert len(round_["gate"]["coefficients"]) == 10
    for row in round_["gate"]["coefficients"].values():
        assert set(row) == {"beta", "se", "status"}
        assert row["se"] > 0
    expected = {"curriculum", "checkpoint", "bank", "pool", "assignment", "contributions"}
    assert expected | {"metrics", "episodes", "masked", "test_bare"} <= set(round_["hashes"])
    assert summary["test"]["bare_success"] is not None


@pytest.mark.slow
def test_nothing_is_left_behind(undisturbed: list[dict[str, Any]], homes: Path) -> None:
    assert mine(homes / "undisturbed") == []
    assert not (homes / "undisturbed" / "instance.json").exists()


@pytest.mark.slow
@pytest.mark.chaos
def test_killing_trainer_worker_queue_and_reconciler_changes_no_document(
    undisturbed: list[dict[str, Any]], homes: Path
) -> None:
    demo = Demo.start(homes / "disturbed")
    demo.until_file("baseline/bare/manifest.json")
    demo.kill_worker()
    demo.until_file("train/metrics.jsonl")
    demo.kill_trainer()
    demo.until_file("validate/bare/manifest.json")
    demo.kill_service("queue")
    demo.until_file("gate/manifest.json")
    demo.kill_service("reconciler")
    demo.kill_worker()
    disturbed = demo.finish()
    assert demo.killed == ["worker", "trainer", "queue", "reconciler", "worker"]
    assert disturbed[-1]["rounds"][0]["hashes"] == undisturbed[-1]["rounds"][0]["hashes"]
    assert mine(homes / "disturbed") == []
