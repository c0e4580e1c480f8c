"""p-values from the design itself: throw the coins again and see how often chance does as well.

Which rollout of a pair got the mask and which its complement was decided by a fair coin for each
task. Under the sharp null a chunk changes nothing on any task; a task's difference, less the
estimated effects of the other chunks, would then have been the same had its coin fallen the other
way, while its row of Z would have changed sign. So the distribution of the chunk's t statistic over
all coins is known without a model (Fisher 1935; the studentised statistic also keeps its level when
effects vary between tasks: Wu & Ding 2021).

The test is conditional on which pair of masks each task got. That loses nothing, holds as it stands
for several looks with slots fixed on the way, and makes all redraws matrix products: with signs s,

    estimate_j = sum_i s_i W_ij N_ij,       W = Z (Z'Z)^-1,
    variance_j = sum_i W_ij^2 (N_ij - s_i Z_ij estimate_j)^2,

N_ij being the task's difference without the other chunks' effects. Specification: gate-analysis.md
§16.3.
"""

from __future__ import annotations

import numpy as np

from trainer.gate.regression import Array
from trainer.gate.standard.design import seeded

BLOCK = 256  # redraws whose signs are held at once


def randomisation_p(Z: Array, d: Array, beta: Array, *, redraws: int, label: str) -> Array:
    """Two-sided p-values (k,) of each column of Z (n, k) for task differences d (n,)."""
    n, k = Z.shape
    W = Z @ np.linalg.inv(Z.T @ Z)
    N = (d - Z @ beta)[:, None] + Z * beta
    moments = np.hstack([W * N, W**2 * Z * N])
    constant, quadratic = np.sum((W * N) ** 2, axis=0), np.sum((W * Z) ** 2, axis=0)

    def squared_t(signs: Array) -> Array:
        sums = signs @ moments
        estimate, cross = sums[:, :k], sums[:, k:]
        variance = constant - 2 * estimate * cross + quadratic * estimate**2
        return np.asarray(estimate**2 / np.maximum(variance, 1e-300))

    observed = squared_t(np.ones((1, n)))[0]
    rng = seeded(label, "redraws")
    exceeded = np.zeros(k)
    for start in range(0, redraws, BLOCK):
        count = min(BLOCK, redraws - start)
        bits = np.frombuffer(rng.bytes(count * -(-n // 8)), dtype=np.uint8).reshape(count, -1)
        signs = 1.0 - 2.0 * np.unpackbits(bits, axis=1, count=n).astype(np.float64)
        exceeded += np.sum(squared_t(signs) >= observed * (1 - 1e-9), axis=0)
    return np.asarray((1.0 + exceeded) / (1.0 + redraws))
