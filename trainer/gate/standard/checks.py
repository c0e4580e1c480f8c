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
from numpy.typing import NDArray
from scipy import special
from scipy.linalg import lapack

from trainer.gate.regression import NORMAL_95, Array, Fit
from trainer.gate.standard.estimate import Pairs

MAX_TERMS_SHARE = 0.5  # products may use up at most this share of the tasks
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class AnyText:
    """The effect of showing text at all, in reward units, with a 95 % interval."""

    effect: float
    standard_error: float
    tasks: int

    def interval(self) -> tuple[float, float]:
        """Normal interval."""
        half = NORMAL_95 * self.standard_error
        return self.effect - half, self.effect + half


def any_text(pairs: Pairs, fit: Fit) -> AnyText | None:
    """alpha of the reward; None when fewer than two tasks have a bare rollout."""
    gain = masked_less_bare(pairs)
    n, at = len(gain), pairs.reward
    if n < 2:
        return None
    share = pairs.shown.mean(axis=(0, 1))
    variance = np.var(gain, ddof=1) / n + share @ fit.covariance[at] @ share
    return AnyText(float(gain.mean() - share @ fit.beta[:, at]), float(np.sqrt(variance)), n)


def masked_less_bare(pairs: Pairs) -> Array:
    """Mean masked minus mean bare reward of each task that has a bare rollout."""
    known, at = pairs.has_bare, pairs.reward
    return np.asarray(pairs.scores[known, :, at].mean(axis=1) - pairs.bare[known, at])


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
    terms, names = two_way_terms(pairs)
    n = len(pairs.task_ids)
    if not names or len(names) > MAX_TERMS_SHARE * n:
        return None
    mains = np.column_stack([np.ones(n), pairs.shown.mean(axis=1)])
    basis = _orthonormal(mains)
    y = pairs.scores[:, :, pairs.reward].mean(axis=1)
    left = y - basis @ (basis.T @ y)
    projected = basis.T @ terms
    gram = _exact_gram(terms) - projected.T @ projected  # of the terms without the main effects
    inverse, kept = _inverse(gram, ROUNDING * n)
    moments = terms[:, kept].T @ left
    effects = inverse @ moments
    explained = float(moments @ effects)
    rss = float(left @ left) - explained
    numerator, denominator = len(kept), n - basis.shape[1] - len(kept)
    if numerator == 0 or denominator <= 0 or rss <= ROUNDING * float(y @ y):
        return None
    variance = rss / denominator
    t = np.abs(effects) / np.sqrt(variance * np.diagonal(inverse))
    best = int(np.argmax(t))
    f = explained / numerator / variance
    return LackOfFit(
        f,
        numerator,
        denominator,
        float(special.fdtrc(numerator, denominator, f)),
        names[kept[best]],
        min(1.0, float(numerator * 2 * special.stdtr(denominator, -t[best]))),
    )


def two_way_terms(pairs: Pairs) -> tuple[Array, list[tuple[str, str]]]:
    """The products of two columns (n, terms), averaged over both rollouts, that vary at all."""
    first, second = pairs.shown[:, 0], pairs.shown[:, 1]
    terms, names = [], []
    for j, m in combinations(range(len(pairs.columns)), 2):
        product = (first[:, j] * first[:, m] + second[:, j] * second[:, m]) / 2
        if np.ptp(product) > 0:
            terms.append(product)
            names.append((pairs.columns[j], pairs.columns[m]))
    return np.column_stack(terms) if terms else np.zeros((len(first), 0)), names


def _orthonormal(X: Array) -> Array:
    """An orthonormal basis (n, rank) of the columns of X."""
    u, singular, _ = np.linalg.svd(X, full_matrices=False)
    return np.asarray(u[:, singular > ROUNDING * singular[0]])


def _exact_gram(X: Array) -> Array:
    """X'X of multiples of one half: sums of small whole numbers, exact in single precision."""
    doubled = (2.0 * X).astype(np.float32)
    return np.asarray(doubled.T @ doubled, dtype=np.float64) / 4.0


def _inverse(gram: Array, tolerance: float) -> tuple[Array, NDArray[np.int64]]:
    """The inverse for a largest set of independent terms (pivoted Cholesky), and which they are."""
    factor, pivots, rank, _ = lapack.dpstrf(gram, lower=1, tol=tolerance)
    inverse, _ = lapack.dpotri(factor[:rank, :rank], lower=1)
    lower = np.tril(inverse, -1)
    return lower + lower.T + np.diag(np.diagonal(inverse)), pivots[:rank] - 1
