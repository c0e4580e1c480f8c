"""Cards beside training: what appears is analysed, and nothing is lost at the end."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from tests.trainer.analyst.conftest import Configure
from trainer.analyst.run import run_analysis
from trainer.analyst.watch import STOP_MARKER, WATCH_FOLDER, end_watch, watch
from trainer.errors import InputError
from trainer.files import read_jsonl, write_jsonl
from trainer.lock import exclusive

RULES = {"kind": "rule_based", "limits": {"poll_seconds": 0.01}}


def training_goes_on(folder: Path) -> tuple[Path, list[object]]:
    """The round as it is in its middle: no groups yet, no checkpoint."""
    groups = folder / "train" / "groups.jsonl"
    lines = list(read_jsonl(groups))
    groups.unlink()
    (folder / "train" / "checkpoint" / "checkpoint.json").rename(folder / "checkpoint.json")
    return groups, lines


def test_groups_are_analysed_as_they_appear_and_the_end_of_training_ends_the_watch(
    round_folder: Path, configure: Configure
) -> None:
    groups, lines = training_goes_on(round_folder)
    cards = round_folder / "analysis" / "failure_cards.jsonl"
    counts: list[int] = []
    deadline = time.monotonic() + 60

    def time_passes(_seconds: float) -> None:
        """Training ends once a card is there; how soon that is depends on the machine."""
        time.sleep(0.002)
        counts.append(len(list(read_jsonl(cards))))
        if len(counts) < len(lines):
            write_jsonl(groups, lines[: len(counts)])
        elif not counts[-1] and time.monotonic() < deadline:
            return
        elif (round_folder / "checkpoint.json").exists():
            write_jsonl(groups, lines)
            (round_folder / "checkpoint.json").rename(
                round_folder / "train" / "checkpoint" / "checkpoint.json"
            )

    found = watch(configure(round_folder, RULES), sleep=time_passes)
    assert found["ended"] == "training has ended"
    assert (found["triage_groups"], found["analyzed_cards"]) == (6, 6)
    assert counts[0] == 0 and counts[-1] >= 1, "cards were made while training went on"
    before = cards.read_text()
    summary = run_analysis(configure(round_folder, RULES))
    assert summary["analyzed_cards"] == 6
    assert cards.read_text() == before, "the run makes no card again"


def test_a_run_asks_a_watch_to_end_and_waits_for_it(
    round_folder: Path, configure: Configure
) -> None:
    training_goes_on(round_folder)
    folder = round_folder / "analysis"
    ended: list[str] = []

    def beside() -> None:
        with exclusive(folder), exclusive(folder / WATCH_FOLDER):
            ended.append(watch(configure(round_folder, RULES))["ended"])

    thread = threading.Thread(target=beside)
    thread.start()
    while not (folder / WATCH_FOLDER / ".lock").exists():
        time.sleep(0.01)
    end_watch(folder)
    thread.join()
    assert ended == ["asked to end"]
    assert not (folder / STOP_MARKER).exists()


def test_a_watch_that_does_not_end_is_an_error(round_folder: Path) -> None:
    folder = round_folder / "analysis"
    with (
        exclusive(folder / WATCH_FOLDER),
        pytest.raises(InputError, match="another process is working"),
    ):
        end_watch(folder, grace=0.0)


def test_without_an_analyst_there_is_nothing_to_watch_with(
    round_folder: Path, configure: Configure
) -> None:
    with pytest.raises(InputError, match="no analyst to watch with"):
        watch(configure(round_folder))
