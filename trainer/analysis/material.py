"""The document and the rows behind it: what a report computes its tables and downloads from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trainer.analysis.cohorts import Population
from trainer.analysis.schema import Analysis
from trainer.compare.outcomes import Arm


@dataclass(frozen=True, slots=True)
class Material:
    """``outcomes`` are task values by split and condition; ``episodes`` the behaviour of each."""

    analysis: Analysis
    outcomes: Mapping[str, Mapping[str, Arm]] = field(default_factory=dict)
    episodes: Sequence[Population] = ()
