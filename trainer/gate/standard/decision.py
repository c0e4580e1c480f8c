"""Adopt, keep, hold, retire: what the evidence allows.

The published rule asks "is the estimate positive?", which a useless chunk answers yes half of the
time. Here a change needs evidence and the absence of evidence changes nothing:

* a candidate enters only with evidence that it helps: its one-sided p-value is at most
  ``adopt_alpha``, and Holm's rule over all candidates of the gate agrees at ``adopt_familywise``. A
  rewrite must beat both absence and the text it would replace, so its p-value is the larger of two;
* a current chunk that shows it helps is kept, with rho from its shrunk effect;
* one that shows no useful effect is retired: its upper bound lies below ``retire_margin`` and not
  even weak evidence speaks for it (``doubt_confidence``), or it is equivalent to zero;
* any other is held: it stays, at the smallest rho, for the next gate to decide.

Specification: gate-analysis.md §16.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from trainer.gate.regression import Array
from trainer.gate.slots import Layout
from trainer.gate.standard.settings import StandardSettings

Decision = Literal["adopt", "reject", "keep", "hold", "retire"]
ADOPT, REJECT, KEEP, HOLD, RETIRE = range(5)
NAMES: tuple[Decision, ...] = ("adopt", "reject", "keep", "hold", "retire")


@dataclass(frozen=True, slots=True)
class Roles:
    """Which columns are what, by index. ``replaced[i]`` is the old column of candidate i, or -1."""

    current: NDArray[np.int64]
    candidates: NDArray[np.int64]
    replaced: NDArray[np.int64]

    @classmethod
    def of(cls, layout: Layout) -> Roles:
        """The roles of a layout's columns."""
        index = {column: position for position, column in enumerate(layout.columns)}
        items = layout.interventions
        candidates = [name for name, item in items.items() if item.kind == "candidate"]
        old = [
            index[items[name].logical_chunk_id] if items[name].operation == "REWRITE" else -1
            for name in candidates
        ]
        current = [index[name] for name, item in items.items() if item.kind == "current"]
        return cls(
            np.array(current, dtype=np.int64),
            np.array([index[name] for name in candidates], dtype=np.int64),
            np.array(old, dtype=np.int64),
        )


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The settings as numbers that estimates are compared with, for one look."""

    adopt_alpha: float
    adopt_familywise: float
    keep_z: float
    doubt_z: float
    retire_z: float
    equivalence_z: float
    retire_margin: float
    equivalence_margin: float
    degrees_of_freedom: int

    @classmethod
    def of(cls, settings: StandardSettings, df: int, *, spent: float = 1.0) -> Thresholds:
        """``spent`` is the share of each error that this look may use (1 without looks)."""

        def quantile(level: float) -> float:
            return float(special.stdtrit(df, 1.0 - (1.0 - level) * spent))

        return cls(
            settings.adopt_alpha * spent,
            settings.adopt_familywise * spent,
            quantile(settings.keep_confidence),
            float(special.stdtrit(df, settings.doubt_confidence)),  # a guard, not a claim
            quantile(settings.retire_confidence),
            quantile(0.95),
            settings.retire_margin,
            settings.equivalence_margin,
            df,
        )


@dataclass(frozen=True, slots=True)
class Decisions:
    """A decision a column, and the p-values of the candidates (NaN for current chunks).

    All are (k,), or (resamples, k) when that many estimates were decided at once.
    """

    codes: NDArray[np.int64]
    p: Array
    p_holm: Array

    def named(self, layout: Layout) -> Mapping[str, Decision]:
        """Decisions by intervention id."""
        return {name: NAMES[code] for name, code in zip(layout.columns, self.codes, strict=True)}


def decide(roles: Roles, beta: Array, covariance: Array, limits: Thresholds) -> Decisions:
    """Apply the rule to reward estimates (..., k) with one covariance (k, k)."""
    error = np.sqrt(np.maximum(np.diagonal(covariance), 1e-300))
    codes = np.full(beta.shape, HOLD, dtype=np.int64)
    now, se = beta[..., roles.current], error[roles.current]
    kept = np.where(now - limits.keep_z * se > 0, KEEP, HOLD)
    codes[..., roles.current] = np.where(shows_nothing(now, se, limits), RETIRE, kept)

    p = np.full(beta.shape, np.nan)
    adjusted = np.full(beta.shape, np.nan)
    if len(roles.candidates):
        raw = candidate_p(roles, beta, covariance, limits.degrees_of_freedom)
        holm = holm_adjusted(raw)
        p[..., roles.candidates] = raw
        adjusted[..., roles.candidates] = holm
        adopted = (raw <= limits.adopt_alpha) & (holm <= limits.adopt_familywise)
        codes[..., roles.candidates] = np.where(adopted, ADOPT, REJECT)
    return Decisions(codes, p, adjusted)


def nothing_changes(layout: Layout) -> dict[str, Decision]:
    """The decisions that leave the bank as it is."""
    return {
        name: "hold" if item.kind == "current" else "reject"
        for name, item in layout.interventions.items()
    }


def shows_nothing(beta: Array, error: Array, limits: Thresholds) -> NDArray[np.bool_]:
    """Whether each effect is shown to be too small to be worth its place, or equivalent to zero."""
    doubtful = beta - limits.doubt_z * error <= 0
    small = beta + limits.retire_z * error < limits.retire_margin
    nothing = np.abs(beta) + limits.equivalence_z * error < limits.equivalence_margin
    return np.asarray((doubtful & small) | nothing)


def candidate_p(roles: Roles, beta: Array, covariance: Array, df: int) -> Array:
    """One-sided p-values of the candidates: against absence, and against the text they replace."""
    new, old = roles.candidates, roles.replaced
    error = np.sqrt(np.maximum(np.diagonal(covariance), 1e-300))
    against_absence = special.stdtr(df, -beta[..., new] / error[new])
    variance = covariance[new, new] + covariance[old, old] - 2 * covariance[new, old]
    gain = beta[..., new] - beta[..., old]
    against_old = special.stdtr(df, -gain / np.sqrt(np.maximum(variance, 1e-300)))
    rewrites = old >= 0
    worse = np.maximum(against_absence, against_old)
    return np.asarray(np.where(rewrites, worse, against_absence))


def holm_adjusted(p: Array) -> Array:
    """Holm's step-down adjustment of p-values along the last axis."""
    order = np.argsort(p, axis=-1, kind="stable")
    scaled = np.take_along_axis(p, order, axis=-1) * np.arange(p.shape[-1], 0, -1)
    stepped = np.minimum(1.0, np.maximum.accumulate(scaled, axis=-1))
    adjusted = np.empty(p.shape)
    np.put_along_axis(adjusted, order, stepped, axis=-1)
    return adjusted
