"""Tests and intervals for paired outcomes, one pair a task.

For successes only the discordant pairs carry evidence: ``gain`` tasks fail in arm a and succeed in
arm b, ``loss`` tasks the other way round. Reference values: published-figures.md §10.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]
PERMUTATIONS = 10_000
POWER = 0.8


@dataclass(frozen=True, slots=True)
class Transitions:
    """How paired successes moved from arm a to arm b."""

    gain: int
    loss: int
    both: int
    neither: int

    @classmethod
    def of(cls, a: Array, b: Array) -> Transitions:
        """Count the pairs of two 0/1 outcomes."""
        first, second = a == 1.0, b == 1.0
        return cls(
            gain=int(np.sum(~first & second)),
            loss=int(np.sum(first & ~second)),
            both=int(np.sum(first & second)),
            neither=int(np.sum(~first & ~second)),
        )

    @property
    def n(self) -> int:
        """All pairs."""
        return self.gain + self.loss + self.both + self.neither

    def to_record(self) -> dict[str, int]:
        """The table as reports print it."""
        return {
            "failure_to_success": self.gain,
            "success_to_failure": self.loss,
            "both_success": self.both,
            "both_failure": self.neither,
        }


def mcnemar(table: Transitions) -> tuple[float, float]:
    """Two-sided exact and mid-p values: is a discordant pair equally often a gain and a loss?"""
    from scipy import stats  # a second to import, and a page rarely comes here

    discordant = table.gain + table.loss
    if discordant == 0:
        return 1.0, 1.0
    fewer = min(table.gain, table.loss)
    tail = float(stats.binom.cdf(fewer, discordant, 0.5))
    exact = min(1.0, 2.0 * tail)
    if table.gain == table.loss:
        return exact, 1.0 - float(stats.binom.pmf(fewer, discordant, 0.5))
    return exact, 2.0 * tail - float(stats.binom.pmf(fewer, discordant, 0.5))


def newcombe(table: Transitions, level: float = 0.95) -> tuple[float, float]:
    """Interval of the difference of two paired proportions (Newcombe 1998, method 10).

    Wilson limits of both proportions, combined with their continuity-corrected correlation.
    """
    n = table.n
    b_rate = (table.both + table.gain) / n
    a_rate = (table.both + table.loss) / n
    low_b, high_b = wilson(b_rate, n, level)
    low_a, high_a = wilson(a_rate, n, level)
    phi = _correlation(table)
    difference = b_rate - a_rate

    def reach(down: float, up: float) -> float:
        return math.sqrt(max(0.0, down**2 - 2 * phi * down * up + up**2))

    return (
        difference - reach(b_rate - low_b, high_a - a_rate),
        difference + reach(high_b - b_rate, a_rate - low_a),
    )


def _correlation(table: Transitions) -> float:
    b_yes, a_yes = table.both + table.gain, table.both + table.loss
    margins = b_yes * (table.n - b_yes) * a_yes * (table.n - a_yes)
    if margins == 0:
        return 0.0
    excess = table.both * table.neither - table.gain * table.loss
    if excess > 0:
        excess = max(0, excess - table.n / 2)  # type: ignore[assignment]
    return excess / math.sqrt(margins)


def wilson(rate: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Score interval of one proportion."""
    z = float(special.ndtri(0.5 + level / 2))
    centre = rate + z**2 / (2 * n)
    half = z * math.sqrt(rate * (1 - rate) / n + z**2 / (4 * n**2))
    scale = 1 + z**2 / n
    return (centre - half) / scale, (centre + half) / scale


def sign_flip(differences: Array, *, seed: int, permutations: int = PERMUTATIONS) -> float:
    """Two-sided p-value of a mean difference; under the null each task's sign is a fair coin."""
    observed = abs(differences.sum())
    moving = differences[differences != 0.0]
    if len(moving) == 0:
        return 1.0
    flips = np.random.default_rng(seed).integers(0, 2, (permutations, len(moving))) * 2.0 - 1.0
    extreme = np.sum(np.abs(flips @ moving) >= observed - 1e-12)
    return float((1 + extreme) / (1 + permutations))


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Adjusted p-values that keep the chance of any false finding at the nominal level."""
    adjusted: dict[str, float] = {}
    largest = 0.0
    ordered = sorted(p_values.items(), key=lambda item: item[1])
    for rank, (name, p) in enumerate(ordered):
        largest = max(largest, min(1.0, (len(ordered) - rank) * p))
        adjusted[name] = largest
    return {name: adjusted[name] for name in p_values}


def detectable(differences: Array, level: float = 0.95, power: float = POWER) -> float:
    """The smallest true mean difference that n pairs find with this power (two-sided)."""
    z = float(special.ndtri(0.5 + level / 2) + special.ndtri(power))
    return z * float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
