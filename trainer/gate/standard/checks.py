"""Two questions beside the main effects: does any text help, and do chunks depend on each other?

*Any text.* Tasks with a bare rollout tell the mean effect of a masked prompt. What the chunks do
not account for is the effect of showing text at all,

    alpha = mean(masked - bare) - sum_j share_j beta_j,

share_j being how often column j is shown. The published fit has no place for it and spreads it over
the chunks.

*Lack of fit.* In a fold-over the two-way products are equal in both rollouts of a pair, so they
cannot touch the differences, and show only in the sums: the mean score of a pair is regressed on
all products and an F test asks whether they explain anything. Specification: gate-analysis.md
§16.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats

from trainer.gate.regression import Array, Fit
from trainer.gate.standard.estimate import Pairs

MAX_TERMS_SHARE = 0.5  # products may use up at most this share of the tasks


@dataclass(frozen=True, slots=True)
class AnyText:
    """The effect of showing text at all, in reward units, with a 95 % interval."""

    effect: float
    standard_error: float
    tasks: int

    def interval(self) -> tuple[float, float]:
        """Normal interval."""
        half = 1.959963984540054 * self.standard_error
        return self.effect - half, self.effect + half


def any_text(pairs: Pairs, fit: Fit) -> AnyText | None:
    """alpha of the reward; None when fewer than two tasks have a bare rollout."""
    known = pairs.has_bare
    n = int(known.sum())
    if n < 2:
        return None
    at = pairs.reward
    gain = pairs.scores[known, :, at].mean(axis=1) - pairs.bare[known, at]
    share = pairs.shown.mean(axis=(0, 1))
    variance = np.var(gain, ddof=1) / n + share @ fit.covariance[at] @ share
    return AnyText(float(gain.mean() - share @ fit.beta[:, at]), float(np.sqrt(variance)), n)


@dataclass(frozen=True, slots=True)
class LackOfFit:
    """F test of all two-way terms, and the strongest of them with its Bonferroni p-value."""

    f: float
    numerator: int
    denominator: int
    p: float
    strongest: tuple[str, str]
    strongest_p: float


def lack_of_fit(pairs: Pairs) -> LackOfFit | None:
    """The check on the reward; None when there are no products or too many for the tasks."""
    first, second = pairs.shown[:, 0], pairs.shown[:, 1]
    terms, names = [], []
    for j, m in combinations(range(len(pairs.columns)), 2):
        product = (first[:, j] * first[:, m] + second[:, j] * second[:, m]) / 2
        if np.ptp(product) > 0:
            terms.append(product)
            names.append((pairs.columns[j], pairs.columns[m]))
    n = len(first)
    if not terms or len(terms) > MAX_TERMS_SHARE * n:
        return None
    y = pairs.scores[:, :, pairs.reward].mean(axis=1)
    mains = np.column_stack([np.ones(n), (first + second) / 2])
    varying = mains[:, [0, *(1 + np.flatnonzero(np.ptp(mains[:, 1:], axis=0) > 0))]]
    small, full = varying, np.column_stack([varying, *terms])
    rss_small, _ = _residual(small, y)
    rss_full, rank = _residual(full, y)
    numerator = rank - np.linalg.matrix_rank(small)
    denominator = n - rank
    if numerator <= 0 or denominator <= 0 or rss_full <= 0:
        return None
    f = (rss_small - rss_full) / numerator / (rss_full / denominator)
    strongest, p = _strongest(full, y, rss_full / denominator, denominator, len(terms))
    return LackOfFit(
        float(f),
        int(numerator),
        int(denominator),
        float(stats.f.sf(f, numerator, denominator)),
        names[strongest],
        p,
    )


def _residual(X: Array, y: Array) -> tuple[float, int]:
    beta, _, rank, _ = np.linalg.lstsq(X, y, rcond=None)
    return float(np.sum((y - X @ beta) ** 2)), int(rank)


def _strongest(X: Array, y: Array, variance: float, df: int, terms: int) -> tuple[int, float]:
    pseudo = np.linalg.pinv(X)
    error = np.sqrt(np.maximum(np.sum(pseudo**2, axis=1) * variance, 1e-300))
    t = np.abs(pseudo @ y / error)[-terms:]
    best = int(np.argmax(t))
    return best, min(1.0, float(terms * 2 * stats.t.sf(t[best], df)))
