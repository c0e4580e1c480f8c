from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as peer_mcnemar
from statsmodels.stats.multitest import multipletests

from trainer.compare.bootstrap import bca_interval
from trainer.compare.paired import Transitions, detectable, holm, mcnemar, newcombe, sign_flip


def table(gain: int, loss: int, both: int = 10, neither: int = 10) -> Transitions:
    return Transitions(gain, loss, both, neither)


@pytest.mark.parametrize(("gain", "loss"), [(46, 35), (19, 11), (3, 0), (7, 7), (0, 4)])
def test_mcnemar_equals_statsmodels(gain: int, loss: int) -> None:
    peer = peer_mcnemar([[10, gain], [loss, 10]], exact=True).pvalue
    exact, mid = mcnemar(table(gain, loss))
    assert exact == pytest.approx(peer)
    assert mid < exact or gain == loss


def test_no_discordant_pair_is_no_evidence() -> None:
    assert mcnemar(table(0, 0)) == (1.0, 1.0)


def test_mid_p_of_a_balanced_table_is_below_one() -> None:
    exact, mid = mcnemar(table(2, 2))
    assert (exact, mid) == (1.0, pytest.approx(1 - stats.binom.pmf(2, 4, 0.5)))


def test_newcombe_is_antisymmetric_and_inside_the_unit_range() -> None:
    low, high = newcombe(table(46, 35, 172, 147))
    back_low, back_high = newcombe(table(35, 46, 172, 147))
    assert (low, high) == pytest.approx((-back_high, -back_low))
    low, high = newcombe(table(0, 0, 5, 0))
    assert low <= 0.0 <= high


def test_transitions_are_counted() -> None:
    a = np.array([0.0, 0.0, 1.0, 1.0, 1.0])
    b = np.array([1.0, 0.0, 0.0, 1.0, 1.0])
    assert Transitions.of(a, b) == Transitions(gain=1, loss=1, both=2, neither=1)


def test_holm_equals_statsmodels() -> None:
    p = {"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005}
    peer = multipletests(list(p.values()), method="holm")[1]
    assert list(holm(p).values()) == pytest.approx(list(peer))


def test_sign_flips_agree_with_all_flips_of_a_small_sample() -> None:
    differences = np.array([0.5, 1.0, -0.25, 0.75, 0.0])
    signs = np.array(np.meshgrid(*[[-1, 1]] * 5)).reshape(5, -1).T
    exact = np.mean(np.abs(signs @ differences) >= abs(differences.sum()))
    assert sign_flip(differences, seed=1) == pytest.approx(exact, abs=0.015)
    assert sign_flip(np.zeros(4), seed=1) == 1.0


def test_sign_flips_reject_a_true_null_at_the_nominal_rate() -> None:
    rng = np.random.default_rng(5)
    rejected = [
        sign_flip(rng.normal(size=40), seed=seed, permutations=400) <= 0.05 for seed in range(400)
    ]
    assert 0.02 <= np.mean(rejected) <= 0.09


def test_bca_equals_scipy_up_to_resampling() -> None:
    sample = np.random.default_rng(2).exponential(size=120)
    peer = stats.bootstrap(
        (sample,), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(1)
    ).confidence_interval
    assert bca_interval(sample) == pytest.approx((peer.low, peer.high), abs=0.02)
    assert bca_interval(np.full(9, 0.5)) == (0.5, 0.5)


def test_the_detectable_difference_is_2_8_standard_errors() -> None:
    differences = np.random.default_rng(3).normal(size=400)
    assert detectable(differences) == pytest.approx(2.8016 * differences.std(ddof=1) / 20, rel=1e-4)
