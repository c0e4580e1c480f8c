"""``gate run`` as a process: killed without warning it continues to the same documents."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainer.canonical import fingerprint
from trainer.cli.main import main
from trainer.files import read_json, write_json, write_jsonl
from trainer.gate.folder import MANIFEST
from trainer.gate.pool import pool_document
from trainer.lock import exclusive
from trainer.skills.bank import load_bank

ROOT = Path(__file__).resolve().parents[3]
MINI = ROOT / "configs" / "mini"
TASKS = 44
LIMIT_S = 300.0
PROFILES: dict[str, dict[str, Any]] = {
    "published": {"profile": "published"},
    "standard": {
        "profile": "standard",
        "standard": {"looks": 2, "confirm_tasks": 4, "redraws": 100, "bootstrap": 100},
    },
}


@pytest.fixture(scope="module")
def round_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A round with the demonstration's bank as its pool, and the bare run of its checkpoint."""
    folder = tmp_path_factory.mktemp("round")
    bank = load_bank(MINI / "skillbank.json")
    pool = pool_document(
        round_id="round-000", proposal_checkpoint="start", bank=bank, candidates=[]
    )
    write_json(folder / "analysis" / "candidate_pool.json", pool)
    write_jsonl(folder / "analysis" / "proposal_ledger.jsonl", [])
    evaluate = {"stage": "evaluate", "output_dir": "bare", "tasks": {"limit": TASKS}}
    assert run("evaluate", write(folder, "bare", evaluate)).wait(LIMIT_S) == 0
    return folder


def write(folder: Path, name: str, settings: dict[str, Any]) -> Path:
    path = folder / f"{name}.yaml"
    common = {
        "name": "check",
        "policy": {"checkpoint": str(MINI / "checkpoint"), "threads": 1},
        "seed": 5,
        "batch_size": 8,
    }
    path.write_text(yaml.safe_dump({**common, **settings}))
    return path


def gate_config(folder: Path, name: str, **settings: Any) -> Path:
    gate = {
        "stage": "gate",
        "output_dir": name,
        "candidate_pool": "analysis/candidate_pool.json",
        "bare_run": "bare",
        "tasks": TASKS,
    }
    return write(folder, name, {**gate, **settings})


def run(command: str, config: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "trainer", command, "run", str(config)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
    )


def kill_when(process: subprocess.Popen[bytes], *traces: Path) -> None:
    """Kill it once these files have grown, or let it end."""
    before = sum(path.stat().st_size for path in traces if path.exists())
    deadline = time.monotonic() + LIMIT_S
    while process.poll() is None:
        if sum(path.stat().st_size for path in traces if path.exists()) > before:
            process.send_signal(signal.SIGKILL)
            break
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.wait()


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.parametrize("profile", PROFILES)
def test_a_killed_gate_continues_to_the_same_documents(round_folder: Path, profile: str) -> None:
    settings = PROFILES[profile]
    whole = gate_config(round_folder, f"whole-{profile}", **settings)
    assert run("gate", whole).wait(LIMIT_S) == 0
    cut = gate_config(round_folder, f"cut-{profile}", **settings)
    out = round_folder / f"cut-{profile}"
    early = [out / "traces.jsonl", out / "looks" / "look-01" / "traces.jsonl"]
    late = [*early, out / "looks" / "look-02" / "traces.jsonl", out / "confirm/new/traces.jsonl"]
    kill_when(run("gate", cut), *early)
    if profile == "standard":
        kill_when(run("gate", cut), *late)
    for trace in late:
        if trace.exists():
            with trace.open("ab") as handle:
                handle.write(b'{"episode_id": "task-0')  # what a kill inside a write would leave
    assert run("gate", cut).wait(LIMIT_S) == 0
    manifests = [
        read_json(round_folder / f"{name}-{profile}" / MANIFEST) for name in ("whole", "cut")
    ]
    assert manifests[0]["output"] == manifests[1]["output"]
    assert manifests[0]["gate_fingerprint"] == manifests[1]["gate_fingerprint"]


@pytest.mark.slow
def test_two_processes_cannot_work_on_one_gate(
    round_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = gate_config(round_folder, "locked")
    with exclusive(round_folder / "locked"):
        assert main(["gate", "run", str(config)]) == 2
    assert "another process is working in this folder" in capsys.readouterr().err


@pytest.mark.slow
def test_an_unfinished_gate_cannot_be_continued_by_another(
    round_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = round_folder / "begun"
    write_json(out / "gate.json", {"gate_fingerprint": fingerprint("another"), "identity": {}})
    assert main(["gate", "run", str(gate_config(round_folder, "begun"))]) == 2
    assert "the folder holds another gate" in capsys.readouterr().err
    assert sorted(file.name for file in out.iterdir()) == [".lock", "gate.json"]
