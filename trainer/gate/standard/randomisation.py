"""p-values from the design itself: deal the masks again and see how often chance does as well.

Under the sharp null a chunk changes nothing on any task. The outcomes, less the estimated effects
of the other chunks, would then have been the same under every other deal, and since the deal was
ours, the distribution of its t statistic is known without a model (Fisher 1935; the studentised
statistic also keeps its level when effects vary between tasks: Wu & Ding 2021). A new deal permutes
the rows of the base array over the tasks and flips each pair's coin; Z'Z stays the same.
Specification: gate-analysis.md §16.3.
"""

from __future__ import annotations

import numpy as np

from trainer.gate.regression import Array
from trainer.gate.standard.design import seeded


def randomisation_p(Z: Array, d: Array, beta: Array, *, redraws: int, label: str) -> Array:
    """Two-sided p-values (k,) of each column of Z (n, k) for task differences d (n,)."""
    n, k = Z.shape
    inverse = np.asarray(np.linalg.inv(Z.T @ Z), dtype=np.float64)
    null = d[:, None] - (Z @ beta)[:, None] + Z * beta  # (n, k): without the others' effects
    observed = np.abs(_t(Z, null, inverse))
    rng = seeded(label, "redraws")
    exceeded = np.zeros(k)
    for _ in range(redraws):
        deal = Z[rng.permutation(n)] * rng.choice([-1.0, 1.0], size=(n, 1))
        exceeded += np.abs(_t(deal, null, inverse)) >= observed - 1e-12
    return np.asarray((1.0 + exceeded) / (1.0 + redraws))


def _t(Z: Array, null: Array, inverse: Array) -> Array:
    """The studentised estimate of each column j from its own null outcomes ``null[:, j]``."""
    weights = Z @ inverse
    estimate = np.einsum("ij,ij->j", weights, null)
    residual = null - Z * estimate
    variance = np.einsum("ij,ij->j", weights**2, residual**2)
    return np.asarray(estimate / np.sqrt(np.maximum(variance, 1e-300)))
