"""How often would the same decision be taken again? Tasks are drawn, fitted and decided anew.

A resample gives task i the weight w_i, a count of draws; its estimate solves Z'WZ b = Z'Wd. All
products Z_ij Z_il and Z_ij d_i are formed once, so that the cross products of all resamples are two
matrix products; those of Z are small whole numbers, so single precision holds them exactly.
Covariances are kept: they change little, and the question is how the estimates move. A resample of
few tasks may leave two effects indistinguishable; it then takes the smallest that fit.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from trainer.gate.regression import Array
from trainer.gate.standard.decision import NAMES, Roles, Thresholds, decide
from trainer.gate.standard.design import seeded

BLOCK = 500  # resamples whose weights are held at once
ROUNDING = 1e-10
ENOUGH = 10  # tasks a column from which on resamples tell all effects apart


def resampled_effects(Z: Array, d: Array, *, resamples: int, label: str) -> Array:
    """Estimates (resamples, k) of Z (n, k) and d (n,) over resampled tasks."""
    n, k = Z.shape
    rows, cols = np.triu_indices(k)
    products = (Z[:, rows] * Z[:, cols]).astype(np.float32)
    scores = Z * d[:, None]
    rng = seeded(label, "bootstrap")
    found = []
    for start in range(0, resamples, BLOCK):
        count = min(BLOCK, resamples - start)
        draws = rng.randint(0, n, size=(count, n)) + n * np.arange(count)[:, None]
        weights = np.bincount(draws.ravel(), minlength=count * n).reshape(count, n)
        counts = weights.astype(np.float32)
        gram = np.empty((count, k, k))
        gram[:, rows, cols] = counts @ products
        gram[:, cols, rows] = gram[:, rows, cols]
        found.append(_solved(gram, weights @ scores, sure=n >= ENOUGH * k))
    return np.concatenate(found)


def _solved(gram: Array, moments: Array, *, sure: bool) -> Array:
    """The smallest b with gram b = moments, for each of many: (count, k, k) and (count, k)."""
    if sure:
        with suppress(np.linalg.LinAlgError):
            return np.asarray(np.linalg.solve(gram, moments[:, :, None])[:, :, 0])
    inverse = np.linalg.pinv(gram, rcond=ROUNDING, hermitian=True)
    return np.asarray((inverse @ moments[:, :, None])[:, :, 0])


def decision_frequency(
    effects: Array, covariance: Array, roles: Roles, limits: Thresholds
) -> NDArray[np.float64]:
    """Share of resamples (k, 5) in which each column got each decision."""
    codes = decide(roles, effects, covariance, limits).codes
    return np.stack([(codes == code).mean(axis=0) for code in range(len(NAMES))], axis=1)
