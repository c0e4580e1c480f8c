"""Several looks at one experiment: decided slots stop, undecided ones get the next batch.

Looking more than once would raise the error rates, so every level is spent in parts: look l of L
may use the share a(l/L) - a((l-1)/L), with a(t) = 2 - 2 Phi(z / sqrt t) (O'Brien & Fleming 1979 in
the form of Lan & DeMets 1983, z the two-sided 5 % quantile). Early looks thus decide only on very
clear evidence. The shares add up to one, so that the errors of all looks together stay within the
levels; since correlations between looks are not used, they stay well within.

A slot is decided when each of its versions is adopted, kept, retired or, for a candidate that shows
no useful effect, rejected. In later looks it is fixed in its decided state and no longer
randomised. Specification: gate-analysis.md §16.3.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from trainer.gate.regression import NORMAL_95
from trainer.gate.slots import Layout
from trainer.gate.standard.analysis import Analysis
from trainer.gate.standard.decision import Decision, Thresholds, shows_nothing
from trainer.gate.standard.settings import StandardSettings


def spent_share(look: int, looks: int) -> float:
    """The share of every error level that look 1..L may use."""

    def cumulative(t: float) -> float:
        return 0.0 if t == 0 else float(2 * special.ndtr(-NORMAL_95 / np.sqrt(t)))

    used = cumulative(look / looks) - cumulative((look - 1) / looks)
    return used / cumulative(1.0)


def batches(task_ids: Sequence[int], looks: int, label: str) -> list[tuple[int, ...]]:
    """The tasks of each look: equal random parts, each in the given order."""

    def rank(task_id: int) -> bytes:
        return hashlib.sha256(f"{label}:look:{task_id}".encode()).digest()

    look_of = {
        task: place * looks // len(task_ids)
        for place, task in enumerate(sorted(task_ids, key=rank))
    }
    return [tuple(t for t in task_ids if look_of[t] == look) for look in range(looks)]


@dataclass(frozen=True, slots=True)
class Look:
    """What one look saw and decided."""

    number: int
    tasks: int
    share: float
    analysis: Analysis
    decided: Mapping[str, Decision]

    def to_record(self) -> dict[str, Any]:
        """The look as the manifest keeps it; estimates pool all batches so far."""
        columns = self.analysis.pairs.columns
        error = self.analysis.fit.standard_error[:, self.analysis.pairs.reward]
        return {
            "look": self.number,
            "tasks": self.tasks,
            "spent_share": self.share,
            "coefficients": dict(zip(columns, self.analysis.beta.tolist(), strict=True)),
            "se": dict(zip(columns, error.tolist(), strict=True)),
            "decided": dict(self.decided),
        }


def decide_look(
    layout: Layout,
    analysis: Analysis,
    settings: StandardSettings,
    earlier: Mapping[str, Decision],
    *,
    share: float,
) -> dict[str, Decision]:
    """Earlier decisions, and those that this look can take. A whole slot is decided at once."""
    limits = Thresholds.of(settings, analysis.fit.degrees_of_freedom, spent=share)
    error = np.sqrt(np.diagonal(analysis.covariance))
    useless = dict(zip(layout.columns, shows_nothing(analysis.beta, error, limits), strict=True))
    named = analysis.decisions.named(layout)
    decided = dict(earlier)
    for slot in layout.slots:
        if all(version in earlier for version in slot.versions):
            continue
        settled = all(
            named[v] in ("adopt", "keep", "retire") or (named[v] == "reject" and useless[v])
            for v in slot.versions
        )
        if settled:
            decided |= {version: named[version] for version in slot.versions}
    return decided


def fixed_states(layout: Layout, decided: Mapping[str, Decision]) -> dict[str, str | None]:
    """The state in which each decided slot stays."""
    states: dict[str, str | None] = {}
    for slot in layout.slots:
        if not all(version in decided for version in slot.versions):
            continue
        staying = [v for v in slot.versions if decided[v] in ("adopt", "keep", "hold")]
        states[slot.slot_id] = staying[-1] if staying else None  # an adopted rewrite comes last
    return states
