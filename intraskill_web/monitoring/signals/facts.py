"""What the rules of signals look at, and what they find: numbers without words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from intraskill_web.experiments.models import Attempt, Stage
from intraskill_web.gates.models import GateRun
from intraskill_web.monitoring.inclusion import InclusionRow
from intraskill_web.monitoring.panels.base import RoundData


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules look at. ``eligible`` counts the cards fit for consolidation, None where no
    analyst has looked yet.
    """

    data: RoundData
    rows: Sequence[InclusionRow]
    stages: Sequence[Stage]
    attempts: Sequence[Attempt]
    gate: GateRun | None = None
    signed: bool = False  # somebody signed the gate off as it is
    eligible: int | None = None
    has_next: bool = False  # the round after it has begun

    def stage(self, kind: str) -> Stage | None:
        """The stage of that kind."""
        return next((stage for stage in self.stages if stage.kind == kind), None)


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule that holds. ``facts`` are plain JSON values; ``moment`` is when it last happened."""

    kind: str
    subject: str = ""
    level: str = "open"
    facts: Mapping[str, Any] = field(default_factory=dict)
    moment: datetime | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What makes it the same finding at the next look."""
        return (self.kind, self.subject)
