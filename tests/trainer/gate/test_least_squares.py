from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm

from trainer.errors import InputError
from trainer.gate.regression import check_design, least_squares


def masks(n: int, k: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, (n, k)).astype(float)


def test_planted_effects_are_recovered_exactly_without_noise() -> None:
    X = masks(60, 4)
    beta = np.array([0.2, 0.6, 0.3, -0.2])
    fit = least_squares(X, (X @ beta)[:, None])
    assert fit.beta[:, 0] == pytest.approx(beta, abs=1e-12)
    assert fit.standard_error.max() < 1e-12


def test_estimates_and_hc3_errors_equal_those_of_statsmodels() -> None:
    rng = np.random.default_rng(3)
    X = masks(300, 6)
    Y = X @ rng.normal(size=(6, 3)) + rng.normal(size=(300, 3)) * (1 + X[:, :1])
    fit = least_squares(X, Y)
    for m in range(3):
        peer = sm.OLS(Y[:, m], X).fit(cov_type="HC3", use_t=True)
        assert fit.beta[:, m] == pytest.approx(peer.params, abs=1e-12)
        assert fit.standard_error[:, m] == pytest.approx(peer.bse, abs=1e-12)
        assert fit.p_value()[:, m] == pytest.approx(peer.pvalues, abs=1e-12)
        low, high = fit.interval()
        assert np.column_stack([low[:, m], high[:, m]]) == pytest.approx(
            np.asarray(peer.conf_int()), abs=1e-12
        )


def test_the_design_has_no_constant_column() -> None:
    X = masks(40, 3)
    X[:, 2] = 1.0 - X[:, 1]
    check_design(X)
    with pytest.raises(InputError, match="rank 3 of 4"):
        check_design(np.column_stack([X, np.ones(40)]))


def test_an_empty_mask_is_an_ordinary_observation() -> None:
    X = np.vstack([np.zeros((4, 2)), np.eye(2), np.ones((1, 2))])
    y = np.array([9.0, 9.0, 9.0, 9.0, 1.0, 2.0, 3.0])[:, None]
    fit = least_squares(X, y)
    assert fit.beta[:, 0] == pytest.approx([1.0, 2.0])
    assert fit.residuals[:4, 0] == pytest.approx([9.0] * 4)


def test_a_coefficient_within_rounding_is_exactly_zero() -> None:
    X = masks(50, 2)
    fit = least_squares(X, (X @ np.array([0.5, 1e-13]))[:, None])
    assert fit.beta[1, 0] == 0.0
    assert fit.p_value()[1, 0] == 1.0


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_outcomes_must_be_finite(value: float) -> None:
    Y = np.zeros((20, 1))
    Y[3] = value
    with pytest.raises(InputError, match="finite"):
        least_squares(masks(20, 2), Y)


def test_a_version_that_is_never_shown_is_named() -> None:
    X = masks(30, 3)
    X[:, 1] = 0.0
    with pytest.raises(InputError, match="never shown: \\['b'\\]"):
        check_design(X, ["a", "b", "c"])


def test_too_few_observations_are_refused() -> None:
    with pytest.raises(InputError, match="2 observations"):
        check_design(masks(2, 2))
