"""What a metric sink is, and how a run feeds several.

``metrics.jsonl`` belongs to the run and is always written; further sinks are copies of it. A copy
that fails is dropped with one message and never stops a run: what it missed stands in the file.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """One step's metrics by full name, and what it took in seconds."""

    step: int
    metrics: Mapping[str, float]
    seconds: Mapping[str, float]


class MetricSink(Protocol):
    """Takes a step's metrics. After a crash a step may come twice, with equal metrics."""

    def log(self, point: MetricPoint) -> None:
        """Pass on one step."""
        ...

    def close(self) -> None:
        """Nothing more will come."""
        ...


class Sinks:
    """Several sinks as one that never fails."""

    def __init__(self, sinks: Sequence[MetricSink] = ()) -> None:
        self._sinks = list(sinks)

    def log(self, point: MetricPoint) -> None:
        """Pass one step on to every sink that still works."""
        for sink in list(self._sinks):
            try:
                sink.log(point)
            except Exception:
                logger.exception("metric sink %s failed at step %d", sink, point.step)
                self._sinks.remove(sink)

    def close(self) -> None:
        """Close every sink that still works."""
        for sink in self._sinks:
            try:
                sink.close()
            except Exception:
                logger.exception("metric sink %s could not be closed", sink)
