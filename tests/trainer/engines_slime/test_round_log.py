"""What slime's trainer tells in its log becomes the files of a round's updates and times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trainer.engines.slime.round_log import RoundLog
from trainer.files import read_jsonl

ACTOR = "\x1b[36m(MegatronTrainRayActor pid=3775, ip=10.0.0.1)\x1b[0m [2026-11-30 16:51:35]"


def update(number: int, **figures: float | str) -> str:
    """The line of an update, as the trainer prints it."""
    told = ", ".join(f"'train/{name}': {value}" for name, value in figures.items())
    return f"{ACTOR} model.py:918 - step {number}: {{{told}, 'train/step': {number}}}"


@pytest.fixture
def log(tmp_path: Path) -> RoundLog:
    """The log of a round of an experiment whose first step was 1; two updates a step."""
    return RoundLog(tmp_path, first_step=1, updates_per_step=2)


def kept(folder: Path, name: str = "updates.jsonl") -> list[dict[str, Any]]:
    return list(read_jsonl(folder / name))


def test_updates_are_counted_from_the_experiments_first_step(log: RoundLog, tmp_path: Path) -> None:
    for number in (2, 3, 4):
        log.read(update(number, loss=-8.5e-05, grad_norm=0.25))
    assert [(line["update"], line["step"]) for line in kept(tmp_path)] == [(1, 1), (2, 1), (3, 2)]
    assert kept(tmp_path)[0]["metrics"] == {
        "train/loss": -8.5e-05, "train/grad_norm": 0.25, "train/step": 2.0,
    }  # fmt: skip


def test_times_of_a_step_come_from_two_processes(log: RoundLog, tmp_path: Path) -> None:
    log.read(" - perf 1: {'rollout/shopsim/q': 0.2, 'perf/rollout_time': np.float64(9.25)}")
    log.read(f"{ACTOR} train_metric_utils.py:401 - perf 1: {{'perf/step_time': 52}}")
    assert kept(tmp_path, "perf.jsonl") == [
        {"step": 1, "metrics": {"perf/rollout_time": 9.25, "perf/step_time": 52.0}}
    ]


def test_a_log_that_is_read_again_changes_nothing(log: RoundLog, tmp_path: Path) -> None:
    lines = [update(number, loss=number / 10) for number in range(2, 8)]
    for line in lines:
        log.read(line)
    before = kept(tmp_path)
    again = RoundLog(tmp_path, first_step=1, updates_per_step=2)
    for line in lines[:3]:
        again.read(line)
        assert kept(tmp_path) == before


def test_what_is_done_again_replaces_what_stood_from_there_on(
    log: RoundLog, tmp_path: Path
) -> None:
    for number in range(2, 8):
        log.read(update(number, loss=0.1))
    resumed = RoundLog(tmp_path, first_step=1, updates_per_step=2)
    resumed.read(update(4, loss=0.2))
    assert [(line["update"], line["metrics"]["train/loss"]) for line in kept(tmp_path)] == [
        (1, 0.1), (2, 0.1), (3, 0.2),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        "",
        "step 3: {'train/loss': 0.1}",  # no log line
        f"{ACTOR} model.py:918 - critic-step 3: {{'train/critic-loss': 0.1}}",
        f"{ACTOR} model.py:918 - step 3: {{'train/loss': nan, 'train/grad_norm': inf}}",
        f"{ACTOR} model.py:918 - step 1: {{'train/loss': 0.1}}",  # before the first step
        f"{ACTOR} train_metric_utils.py:135 - rollout 3: {{'rollout/rewards': 0.1}}",
        f"{ACTOR} model.py:918 - step 3: {{'train/loss': 0.1",  # cut off
        "the agent said ' - step 3: {}'",
    ],
)
def test_other_lines_tell_nothing(log: RoundLog, tmp_path: Path, line: str) -> None:
    log.read(line)
    assert not list(tmp_path.iterdir())


def test_a_figure_that_is_no_number_is_left_out(log: RoundLog, tmp_path: Path) -> None:
    log.read(update(2, loss="nan", grad_norm=0.5))
    assert kept(tmp_path)[0]["metrics"] == {"train/grad_norm": 0.5, "train/step": 2.0}
