"""A small experiment whose stages are little scripts: real processes, no model, no queue server."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from intraskill_web.experiments.making import create_experiment
from intraskill_web.experiments.models import Experiment
from jobs import invoke, pipeline, queue
from jobs.layout import Command, Part, RoundPlan
from tests.jobs.homes import DEMO, Running, end_all
from tests.jobs.sweeping import pass_by, trainer  # noqa: F401 (fixtures)
from trainer.config import WorldConfig
from trainer.experiment_config import ExperimentConfig

# Counts to five in steps that survive a kill; the file it leaves depends on nothing else.
COUNTER = """
import json, sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
from trainer.files import append_jsonl, read_jsonl, write_json
from trainer.progress import Progress, listen_for_stop
folder, pause = Path({folder!r}), {pause}
listen_for_stop()
done = len(list(read_jsonl(folder / "counted.jsonl")))
progress = Progress(folder / "progress.json", unit="number", total=5, done=done)
for number in range(done, 5):
    time.sleep(pause)
    append_jsonl(folder / "counted.jsonl", [{{"number": number}}])
    progress.update(number + 1, f"counted {{number}}")
write_json(folder / "result.json", {{"numbers": list(read_jsonl(folder / "counted.jsonl"))}})
print("counted all", file=sys.stderr)
print(json.dumps({{"counted": 5}}))
"""
QUIET_S = 30.0  # the undisturbed round on two cores that do nothing else
ROOT = str(Path(__file__).resolve().parents[2])


@pytest.fixture
def config(tmp_path: Path) -> ExperimentConfig:
    """A configuration with start files that are there, whatever they hold."""
    start = tmp_path / "start"
    (start / "checkpoint").mkdir(parents=True)
    (start / "checkpoint" / "checkpoint.json").write_text("{}")
    (start / "s0.json").write_text('{"skills": []}')
    return ExperimentConfig.model_validate(
        {
            "name": "small",
            "rounds": 2,
            "start": {"skillbank": start / "s0.json", "checkpoint": start / "checkpoint"},
        }
    )


@pytest.fixture
def experiment(transactional_db: None, home: Path, config: ExperimentConfig) -> Experiment:
    return create_experiment(config)


@pytest.fixture
def handed_in(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """What reached the queue, in order; nothing is really enqueued."""
    jobs: list[tuple[int, str]] = []
    waiting: set[str] = set()

    def enqueue(attempt_id: int, job_id: str, _queue: str) -> bool:
        jobs.append((attempt_id, job_id))
        waiting.add(job_id)
        return True

    monkeypatch.setattr(queue, "enqueue", enqueue)
    monkeypatch.setattr(queue, "withdraw", waiting.discard)
    monkeypatch.setattr(queue, "is_waiting", lambda job_id: job_id in waiting)
    return jobs


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Replace every stage by a script; ``scripted(pause=…, source=…)`` chooses which."""
    monkeypatch.setattr(invoke, "TRAINER", ())

    def use(*, pause: float = 0.0, source: str = COUNTER, **changes: Any) -> None:
        for kind in list(pipeline.PIPELINE):
            monkeypatch.setitem(
                pipeline.PIPELINE, kind, _spec(pipeline.PIPELINE[kind], source, pause, changes)
            )

    return use


def _spec(
    spec: pipeline.StageSpec, source: str, pause: float, changes: dict[str, Any]
) -> pipeline.StageSpec:
    def folder(plan: RoundPlan) -> Path:
        return plan.folder / "scripted" / spec.kind

    def commands(plan: RoundPlan) -> tuple[Command, ...]:
        script = source.format(root=ROOT, folder=str(folder(plan)), pause=pause)
        part = Part("count", folder(plan), WorldConfig(), expected=5)
        return (Command("count", ("-c", script), (part,)),)

    def publish(_stage: object, plan: RoundPlan) -> dict[str, Any]:
        result = json.loads((folder(plan) / "result.json").read_text())
        return {"counted": len(result["numbers"])}

    fields: dict[str, Any] = {
        "needs": lambda _plan: (),
        "commands": commands,
        "yields": lambda plan: (folder(plan) / "result.json",),
        "publish": publish,
        "prepare": lambda _plan: None,
    }
    return replace(spec, **{**fields, **changes})


@pytest.fixture
def valkey(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A real embedded queue server that belongs to the test's home."""
    from jobs.services import valkey as embedded

    server = subprocess.Popen(embedded.prepare(home))
    try:
        deadline = time.monotonic() + 20
        while not queue.status().up:
            assert time.monotonic() < deadline, "the queue server did not start"
            time.sleep(0.05)
        yield server
    finally:
        server.kill()
        server.wait()


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """A round that nobody disturbed: where it lies, and the lines that the demo printed."""

    home: Path
    lines: list[dict[str, Any]]

    @property
    def slowness(self) -> float:
        """How much slower than a quiet machine with two cores this one was, at least 1."""
        return max(1.0, float(self.lines[-1]["seconds"]) / QUIET_S)


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for the homes of a file's tests; what still runs in one ends with the file."""
    folder = tmp_path_factory.mktemp("homes")
    yield folder
    end_all(folder)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """Run once, whoever asks first; processes of one test run share it."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    home, made = base / "undisturbed", base / "undisturbed.json"
    with (base / "undisturbed.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            made.write_text(json.dumps(Running.start(home, *DEMO, "--wait", "--json").finish()))
    return Undisturbed(home, json.loads(made.read_text()))
