"""What an estimate is worth: empirical-Bayes shrinkage towards zero.

Estimates that were selected for being large are too large (the winner's curse). If true effects are
normal around zero with standard deviation tau, the best guess after seeing an estimate b with
standard error s is

    E[beta | b] = b tau^2 / (tau^2 + s^2),   SD = s tau / sqrt(tau^2 + s^2),

and P(beta > 0) follows. tau is the one number all chunks of a gate share; it maximises their
marginal likelihood times tau, a prior that keeps it off zero (Chung et al. 2013), so that shrinkage
never turns a sign or erases an effect. The shrunk effect drives rho. Specification:
gate-analysis.md §16.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from trainer.gate.regression import Array


@dataclass(frozen=True, slots=True)
class Shrunk:
    """Posterior of every column: mean, SD and probability of a positive effect, each (k,)."""

    tau: float
    mean: Array
    sd: Array
    positive: Array


def shrink(beta: Array, standard_error: Array) -> Shrunk:
    """Shrink k estimates (k,) with their standard errors (k,); units are kept."""
    tau = prior_scale(beta, standard_error)
    total = tau**2 + standard_error**2
    mean = beta * tau**2 / total
    sd = standard_error * tau / np.sqrt(total)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(sd > 0, mean / sd, np.sign(mean) * np.inf)
    positive = np.where(mean == 0.0, 0.5, special.ndtr(z))
    return Shrunk(tau, mean, sd, positive)


def prior_scale(beta: Array, standard_error: Array) -> float:
    """The SD of true effects that makes the estimates most plausible, never zero."""
    from scipy import optimize  # pages read gates too, and never need it

    largest = float(np.max(np.abs(beta), initial=0.0) + np.max(standard_error, initial=0.0))
    if largest == 0.0:
        return 1.0

    def cost(log_tau: float) -> float:
        variance = np.exp(2 * log_tau) + standard_error**2
        return float(np.sum(np.log(variance) + beta**2 / variance) / 2 - log_tau)

    best = optimize.minimize_scalar(
        cost, bounds=(np.log(largest) - 12.0, np.log(largest) + 2.0), method="bounded"
    )
    return float(np.exp(best.x))
