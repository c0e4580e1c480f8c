"""What slime's trainer tells in its log alone: the figures of every update, the times of a step.

slime gives them to W&B and TensorBoard, and to no hook: the hooks' part of a step is over before
its first update. In a job's output each is a line (slime 624b824a, 243773cd and 6961f597 alike:
``backends/megatron_utils/model.py``, ``observability/``)::

    (MegatronTrainRayActor pid=1) [2026-11-30 16:51:35] model.py:918 - step 0: {'train/loss': 2e-09}
    (MegatronTrainRayActor pid=1) [2026-11-30 16:51:46] … - perf 0: {'perf/actor_train_time': 29.1}

Specification: training.md §4.9 (names, axes).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainer.files import read_jsonl, write_jsonl

UPDATES, TIMES = "updates.jsonl", "perf.jsonl"
LINE = re.compile(r" - (step|perf) (\d+): (\{.*\})\s*$")
FIGURE = re.compile(r"'((?:train|perf)/[^']+)': (?:np\.\w+\()?(-?[\d.]+(?:e[+-]?\d+)?)(?=[,})])")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class RoundLog:
    """Keeps ``updates.jsonl`` and ``perf.jsonl`` of a round's training folder as a job tells them.

    A line that is told again changes nothing, so a log may be read from its beginning any number
    of times. One that is told otherwise was done again, and what stood behind it with it.
    """

    def __init__(self, folder: Path, *, first_step: int, updates_per_step: int) -> None:
        self._first = first_step * updates_per_step
        self._of_a_step = updates_per_step
        self._updates = _Kept(folder / UPDATES, "update")
        self._times = _Kept(folder / TIMES, "step")

    def read(self, line: str) -> None:
        """Take what a line of the job's output tells, if it does. Raises OSError."""
        told = LINE.search(COLOUR.sub("", line)) if "/" in line else None
        metrics = figures(told[3]) if told else {}
        if told is None or not metrics:
            return
        number = int(told[2])
        if told[1] == "perf":
            self._times.keep({"step": number, "metrics": metrics})
        elif number >= self._first:
            update = number - self._first + 1
            step = number // self._of_a_step
            self._updates.keep({"update": update, "step": step, "metrics": metrics})


def figures(text: str) -> dict[str, float]:
    """The finite numbers of a printed dict whose names begin with ``train/`` or ``perf/``."""
    found = {name: float(value) for name, value in FIGURE.findall(text)}
    return {name: value for name, value in found.items() if math.isfinite(value)}


class _Kept:
    """A small file of JSON lines in the order of ``key``, written whole at every change."""

    def __init__(self, path: Path, key: str) -> None:
        self._path, self._key = path, key
        self._lines: dict[int, dict[str, Any]] = {line[key]: line for line in read_jsonl(path)}

    def keep(self, line: Mapping[str, Any]) -> None:
        number = line[self._key]
        before = self._lines.get(number, {}).get("metrics", {})
        metrics = {**before, **line["metrics"]}  # one step is told of by more than one process
        if metrics == before:
            return
        if any(metrics[name] != value for name, value in before.items()):
            self._lines = {at: kept for at, kept in self._lines.items() if at < number}
        self._lines[number] = {**line, "metrics": metrics}
        write_jsonl(self._path, [self._lines[at] for at in sorted(self._lines)])
