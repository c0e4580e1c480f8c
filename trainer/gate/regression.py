"""What a chunk adds: least squares of outcomes on masks, and how sure one may be of it.

For task i let C_i be the 0/1 row of shown versions and y_i = R_i - B_i the masked outcome minus the
bare one. The model of the published gate is

    y_i = C_i' beta + e_i,

no intercept: a prompt without any chunk is the bare prompt, so its expected difference is zero.
beta_j is then what showing version j adds, averaged over the masks of the others.

Standard errors are HC3 (MacKinnon & White 1985): residual variances may differ between rows, as
they do for outcomes between 0 and 1, and each residual is inflated by its leverage h,

    V = (C'C)^-1 [ sum_i C_i C_i' e_i^2 / (1 - h_i)^2 ] (C'C)^-1.

All outcomes share one design, so one QR factorisation serves all of them.
Specification: gate-analysis.md §§6, 16.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special  # scipy.stats has the same numbers and takes a second to import

from trainer.errors import InputError

Array = NDArray[np.float64]
ZERO = 1e-12  # a coefficient within rounding of zero is zero
NORMAL_95 = float(special.ndtri(0.975))


@dataclass(frozen=True, slots=True)
class Fit:
    """Least squares of m outcomes on k columns over n rows.

    Shapes: ``beta`` and ``standard_error`` (k, m); ``covariance`` (m, k, k); ``residuals`` (n, m);
    ``leverage`` (n,). Units are those of the outcomes.
    """

    beta: Array
    covariance: Array
    residuals: Array
    leverage: Array
    degrees_of_freedom: int

    @property
    def standard_error(self) -> Array:
        """HC3 standard errors."""
        diagonal = np.diagonal(self.covariance, axis1=1, axis2=2)
        return np.asarray(np.sqrt(np.maximum(diagonal, 0.0)).T)

    def first(self, k: int) -> Fit:
        """The same fit, reported for its first k columns: what follows only adjusts."""
        return replace(self, beta=self.beta[:k], covariance=self.covariance[:, :k, :k])

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper ends of the t intervals."""
        half = special.stdtrit(self.degrees_of_freedom, 0.5 + level / 2) * self.standard_error
        return self.beta - half, self.beta + half

    def p_value(self) -> Array:
        """Two-sided p-values of beta = 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.abs(self.beta) / self.standard_error
        t = np.where(self.beta == 0.0, 0.0, t)
        return np.asarray(2.0 * special.stdtr(self.degrees_of_freedom, -t))


def least_squares(X: Array, Y: Array) -> Fit:
    """Fit every column of ``Y`` (n, m) on ``X`` (n, k).

    Raises InputError when a value is not finite, when n <= k, or when columns of X depend on each
    other, so that no coefficient is identified.
    """
    n, k = X.shape
    check_design(X)
    if not np.isfinite(Y).all():
        raise InputError("outcomes must be finite numbers", field="outcomes")
    Q, R = np.linalg.qr(X)
    beta = np.linalg.solve(R, Q.T @ Y)
    beta[np.abs(beta) <= ZERO] = 0.0
    residuals = Y - X @ beta
    leverage = np.sum(Q**2, axis=1)
    bread = np.linalg.inv(R)  # (C'C)^-1 C' = R^-1 Q'
    return Fit(
        beta=beta,
        covariance=_hc3(Q, bread, residuals, leverage),
        residuals=residuals,
        leverage=leverage,
        degrees_of_freedom=n - k,
    )


def _hc3(Q: Array, bread: Array, residuals: Array, leverage: Array) -> Array:
    """HC3 covariance of every outcome: R^-1 [Q' diag(w) Q] R^-1'."""
    weights = (residuals / np.maximum(1.0 - leverage, ZERO)[:, None]) ** 2
    meat = np.stack([(Q * column[:, None]).T @ Q for column in weights.T])
    return np.asarray(bread @ meat @ bread.T)


def rank_of(X: Array) -> int:
    """How many of the columns are independent, by the eigenvalues of X'X."""
    gram = X.T @ X
    smallest = max(1.0, float(np.abs(gram).max(initial=0.0))) * ZERO
    return int(np.sum(np.linalg.eigvalsh(gram) > smallest))


def check_design(X: Array, columns: Sequence[str] = ()) -> None:
    """Raise InputError when the coefficients of ``X`` would not be identified."""
    n, k = X.shape
    if n <= k:
        raise InputError(
            f"{n} observations cannot tell {k} effects apart",
            field="assignments",
            value=n,
            remedy="use more tasks or fewer candidates",
        )
    rank = rank_of(X)
    if rank < k:
        never = [name for name, column in zip(columns, X.T, strict=False) if not column.any()]
        raise InputError(
            f"the design has rank {rank} of {k}" + (f"; never shown: {never}" if never else ""),
            field="assignments",
            remedy="use another mask seed or more tasks",
        )
