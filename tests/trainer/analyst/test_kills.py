"""An analysis that is killed continues from what was answered, and pays for nothing twice."""

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

from tests.trainer.analyst.fake_endpoint import FakeEndpoint
from trainer.files import read_json, read_jsonl

REPOSITORY = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.chaos
def test_kill_9_at_any_point_repeats_no_answered_call(failed_round: Path, tmp_path: Path) -> None:
    """The server kills the analysis at its 9th and 24th request, before it answers, and once
    more when the compiler asks."""
    doomed: dict[str, Any] = {"pid": None, "kills": [9, 24], "compiler": True}

    def on_request(number: int) -> None:
        tools = server.requests[number - 1]["tools"]
        compiling = tools[0]["function"]["name"] == "submit_candidates"
        if number in doomed["kills"] or (compiling and doomed["compiler"]):
            if compiling:
                doomed["compiler"] = False
            os.kill(doomed["pid"], signal.SIGKILL)
            time.sleep(0.2)  # the answer must find nobody
            raise ConnectionResetError

    server = FakeEndpoint(on_request=on_request)
    with server.running():
        config = write_config(failed_round, tmp_path, server.url)
        codes = []
        while not codes or codes[-1] == -signal.SIGKILL:
            process = subprocess.Popen(
                [sys.executable, "-m", "trainer", "analyst", "run", str(config)],
                cwd=REPOSITORY,
                env={**os.environ, "ANALYST_TEST_KEY": "k"},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            doomed["pid"] = process.pid
            _, error = process.communicate(timeout=120)
            codes.append(process.returncode)
    assert codes == [-signal.SIGKILL] * 3 + [0], error.decode()
    assert set(server.answered.values()) == {1}, "an answered call was paid for again"
    cards = list(read_jsonl(tmp_path / "analysis" / "failure_cards.jsonl"))
    assert len({card["card_id"] for card in cards}) == len(cards) == 6
    assert all(card["eligible_for_consolidation"] for card in cards)
    summary = read_json(tmp_path / "analysis" / "analysis_summary.json")
    assert (summary["status"], summary["candidates"]) == ("complete", 1)
    assert summary["accounting"]["calls"] == sum(server.answered.values())


def write_config(round_folder: Path, folder: Path, url: str) -> Path:
    """The analysis of a round on the server at ``url``, one conversation at a time."""
    path = folder / "analyse.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "stage": "analyse",
                "name": "a",
                "round_id": "round-000",
                "output_dir": str(folder / "analysis"),
                "training_dir": str(round_folder / "train"),
                "skillbank": str(round_folder / "bank.json"),
                "proposal_checkpoint": "c",
                "analyst": {
                    "kind": "endpoint",
                    "limits": {"concurrency": 1},
                    "endpoint": {
                        "base_url": url,
                        "model": "fake-1",
                        "api_key_env": "ANALYST_TEST_KEY",
                    },
                },
            }
        )
    )
    return path
