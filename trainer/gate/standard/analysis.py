"""Everything estimated from the pairs of a gate, in one value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.gate.regression import Array, Fit
from trainer.gate.slots import Layout
from trainer.gate.standard.decision import Decisions, Roles, Thresholds, decide
from trainer.gate.standard.estimate import Pairs, estimate
from trainer.gate.standard.settings import StandardSettings
from trainer.gate.standard.shrinkage import Shrunk, shrink


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything estimated from the pairs of a gate; arrays are in column order."""

    pairs: Pairs
    fit: Fit
    shrunk: Shrunk
    decisions: Decisions

    @property
    def beta(self) -> Array:
        """Reward effects (k,)."""
        return np.asarray(self.fit.beta[:, self.pairs.reward])

    @property
    def covariance(self) -> Array:
        """Their covariance (k, k)."""
        return np.asarray(self.fit.covariance[self.pairs.reward])

    @property
    def adjusted_gains(self) -> Array:
        """Task differences in reward (n,) less what the bare outcome explains of them."""
        return np.asarray(self.fit.residuals[:, self.pairs.reward] + self.pairs.signs @ self.beta)


def analyse(
    layout: Layout, pairs: Pairs, settings: StandardSettings, *, spent: float = 1.0
) -> Analysis:
    """Fit and decide. Raises InputError when effects cannot be told apart."""
    fit = estimate(pairs, minimum_adjusting=settings.minimum_adjusting)
    at = pairs.reward
    limits = Thresholds.of(settings, fit.degrees_of_freedom, spent=spent)
    decisions = decide(Roles.of(layout), fit.beta[:, at], fit.covariance[at], limits)
    shrunk = shrink(fit.beta[:, at], fit.standard_error[:, at])
    return Analysis(pairs, fit, shrunk, decisions)
