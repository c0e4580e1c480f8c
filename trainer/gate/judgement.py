"""What a profile makes of the observations: the documents in which a gate ends.

Profiles differ in design, estimate and decision; what they hand to ``run`` is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainer.gate.selection import Selection

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Judgement:
    """A gate's result before it is written.

    ``selection`` feeds the ledger and the bank; ``contributions`` and ``inference`` are documents;
    ``extra`` goes into the manifest.
    """

    selection: Selection
    estimator: Json
    contributions: dict[str, Any]
    inference: dict[str, Any]
    extra: Json = field(default_factory=dict)
