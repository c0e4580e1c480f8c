"""The metric file: one JSON line a step, on disk before the step counts as done."""

from __future__ import annotations

from pathlib import Path

from trainer.files import append_jsonl
from trainer.sinks.base import MetricPoint


class FileSink:
    """Appends ``{"step", "metrics", "seconds"}`` to a JSON lines file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def log(self, point: MetricPoint) -> None:
        """Append one step and wait until it is on disk."""
        record = {
            "step": point.step,
            "metrics": dict(point.metrics),
            "seconds": dict(point.seconds),
        }
        append_jsonl(self._path, [record])

    def close(self) -> None:
        """Nothing is held open between steps."""
