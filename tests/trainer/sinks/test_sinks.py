"""Metric sinks: the file is exact, and a broken copy stops nothing."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from trainer.sinks.base import MetricPoint, Sinks
from trainer.sinks.file import FileSink


class Broken:
    """A sink that fails from its second step on."""

    def __init__(self) -> None:
        self.calls = 0

    def log(self, point: MetricPoint) -> None:
        self.calls += 1
        if self.calls > 1:
            raise ConnectionError("tracker is down")

    def close(self) -> None:
        raise ConnectionError("tracker is down")


def point(step: int) -> MetricPoint:
    return MetricPoint(step, {"rollout/shopsim/success_rate": 0.1 * step}, {"rollout": 1.5})


def test_the_file_holds_one_line_a_step(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "metrics.jsonl")
    for step in (1, 2):
        sink.log(point(step))
    sink.close()
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").open()]
    assert lines[1] == {
        "step": 2,
        "metrics": {"rollout/shopsim/success_rate": 0.2},
        "seconds": {"rollout": 1.5},
    }
    assert len(lines) == 2


def test_a_number_that_is_none_is_refused(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "metrics.jsonl")
    with pytest.raises(ValueError, match="Out of range float"):
        sink.log(MetricPoint(1, {"x": float("nan")}, {}))


def test_a_broken_copy_is_dropped_and_the_others_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken, path = Broken(), tmp_path / "copy.jsonl"
    sinks = Sinks([broken, FileSink(path)])
    with caplog.at_level(logging.ERROR):
        for step in (1, 2, 3):
            sinks.log(point(step))
        sinks.close()
    assert broken.calls == 2
    assert len(path.read_text().splitlines()) == 3
    assert caplog.text.count("failed at step 2") == 1
