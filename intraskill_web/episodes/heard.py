"""An episode as somebody tells of it who may still be playing it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from intraskill_web.episodes.models import Episode


@dataclass(frozen=True, slots=True)
class Heard:
    """The columns that a row would have, and the trace as far as it goes; never saved."""

    episode: Episode
    trace: dict[str, Any]

    @property
    def running(self) -> bool:
        return self.trace.get("status") == "running"

    @property
    def last(self) -> str:
        """What the policy did last."""
        steps = self.trace.get("steps") or [{}]
        return str(steps[-1].get("action") or "")
