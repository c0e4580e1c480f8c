from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from tests.trainer.gate.builders import pool_of
from trainer.gate.regression import Fit, least_squares
from trainer.gate.slots import Layout, build_layout
from trainer.gate.standard.analysis import analyse
from trainer.gate.standard.bootstrap import _solved, decision_frequency, resampled_effects
from trainer.gate.standard.checks import any_text, lack_of_fit
from trainer.gate.standard.decision import Roles, Thresholds
from trainer.gate.standard.design import base_array
from trainer.gate.standard.documents import inference_document
from trainer.gate.standard.estimate import Pairs, contrasts, estimate, headroom
from trainer.gate.standard.randomisation import randomisation_p
from trainer.gate.standard.settings import StandardSettings
from trainer.gate.standard.shrinkage import prior_scale, shrink

LAYOUT = build_layout(pool_of(["a", "b", "c"], {"c": ["new c"]}, ["x"]))
EFFECTS = np.array([0.2, -0.1, 0.3, 0.05, 0.0])


def masks(layout: Layout, n: int, seed: int) -> np.ndarray:
    base = base_array(layout.slots, n, np.random.RandomState(seed))
    shown = np.zeros((n, 2, len(layout.columns)))
    index = {column: position for position, column in enumerate(layout.columns)}
    for s, slot in enumerate(layout.slots):
        for v, version in enumerate(slot.versions, 1):
            shown[:, :, index[version]] = base[:, s] == v
    return shown


def pairs(
    *,
    n: int = 240,
    seed: int = 0,
    noise: float = 0.0,
    bare: int = 0,
    effects: np.ndarray = EFFECTS,
    text: float = 0.0,
    layout: Layout = LAYOUT,
) -> Pairs:
    rng = np.random.default_rng(seed)
    shown = masks(layout, n, seed)
    level = rng.normal(size=n)
    scores = level[:, None] + text + shown @ effects + noise * rng.normal(size=(n, 2))
    without = np.where(np.arange(n) < bare, level + noise * rng.normal(size=n), np.nan)
    return Pairs(
        tuple(range(n)),
        layout.columns,
        ("r_strict", "reward"),
        shown,
        np.stack([scores, scores], axis=2),
        np.stack([without, without], axis=1),
    )


def test_planted_effects_are_recovered_exactly_whatever_the_task_levels() -> None:
    fit = estimate(pairs(text=0.7), minimum_adjusting=30)
    assert fit.beta[:, 1] == pytest.approx(EFFECTS, abs=1e-12)


def test_contrasts_use_the_covariance_of_old_and_new() -> None:
    data = pairs(noise=0.3)
    fit = estimate(data, minimum_adjusting=30)
    (contrast,) = contrasts(LAYOUT, LAYOUT.columns, fit.beta[:, 1], fit.covariance[1])
    assert contrast.old == "c"
    gain = fit.beta[3, 1] - fit.beta[2, 1]
    assert contrast.difference == pytest.approx(gain)
    apart = np.hypot(fit.standard_error[2, 1], fit.standard_error[3, 1])
    assert contrast.standard_error < apart  # the estimates of a family move together


def test_headroom_needs_bare_rollouts_and_has_mean_zero_weight() -> None:
    assert headroom(pairs(bare=20), 30).shape == (240, 0)
    column = headroom(pairs(bare=100), 30)
    assert column.shape == (240, 1)
    assert (column[100:] == 0).all()


def test_adjusting_for_the_bare_outcome_removes_what_tasks_gain_differently() -> None:
    rng = np.random.default_rng(4)
    layout = build_layout(pool_of(list("abcdefgh")))
    shown = masks(layout, 400, 1)
    solved = rng.integers(0, 2, 400).astype(float)
    load = shown.sum(axis=2) * 0.1 * 2 * (1 - solved[:, None])  # unsolved tasks gain, solved do not
    scores = (solved[:, None] + load + 0.05 * rng.normal(size=(400, 2)))[:, :, None]
    data = Pairs(tuple(range(400)), layout.columns, ("reward",), shown, scores, solved[:, None])
    plain = estimate(data, minimum_adjusting=10_000)
    adjusted = estimate(data, minimum_adjusting=30)
    assert adjusted.beta[:, 0] == pytest.approx(np.full(8, 0.1), abs=0.02)
    assert adjusted.standard_error.mean() < 0.8 * plain.standard_error.mean()


def test_the_effect_of_any_text_is_kept_out_of_the_chunks() -> None:
    data = pairs(n=400, bare=400, text=-0.3, noise=0.05)
    found = any_text(data, estimate(data, minimum_adjusting=30))
    assert found is not None
    assert found.effect == pytest.approx(-0.3, abs=3 * found.standard_error)
    assert found.standard_error < 0.01
    assert any_text(pairs(bare=1), estimate(pairs(bare=1), minimum_adjusting=30)) is None


def test_lack_of_fit_sees_an_interaction_and_not_its_absence() -> None:
    layout = build_layout(pool_of(list("abcde")))

    def p_value(strength: float, seed: int) -> float:
        rng = np.random.default_rng(seed)
        shown = masks(layout, 200, seed)
        product = shown[:, :, 0] * shown[:, :, 1]
        scores = (strength * product + 0.3 * rng.normal(size=(200, 2)))[:, :, None]
        data = Pairs(
            tuple(range(200)), layout.columns, ("reward",), shown, scores, np.full((200, 1), np.nan)
        )
        found = lack_of_fit(data)
        assert found is not None
        if strength:
            assert found.strongest == ("a", "b")
        return found.p

    assert p_value(0.5, 1) < 0.001
    null = [p_value(0.0, seed) for seed in range(100)]
    assert 0.01 <= np.mean(np.array(null) < 0.05) <= 0.12


def test_interactions_do_not_touch_the_main_effects_of_a_fold_over() -> None:
    layout = build_layout(pool_of(list("abc")))
    shown = masks(layout, 160, 2)
    scores = (shown @ np.array([0.1, 0.2, 0.0]) + 0.4 * shown[:, :, 0] * shown[:, :, 1])[:, :, None]
    data = Pairs(
        tuple(range(160)), layout.columns, ("reward",), shown, scores, np.full((160, 1), np.nan)
    )
    beta = estimate(data, minimum_adjusting=30).beta[:, 0]
    assert beta == pytest.approx([0.3, 0.4, 0.0], abs=1e-12)  # each averaged over the other


def test_randomisation_p_values_have_their_level_and_agree_with_t() -> None:
    null = np.zeros(5)
    p = np.array(
        [
            randomisation_p(
                data.signs,
                data.gains[:, 1],
                estimate(data, minimum_adjusting=30).beta[:, 1],
                redraws=99,
                label=str(seed),
            )
            for seed in range(200)
            for data in [pairs(n=60, seed=seed, noise=0.3, effects=null)]
        ]
    )
    assert 0.03 <= (p <= 0.05).mean() <= 0.075
    data = pairs(n=240, noise=0.3, seed=9)
    fit = estimate(data, minimum_adjusting=30)
    p = randomisation_p(data.signs, data.gains[:, 1], fit.beta[:, 1], redraws=999, label="x")
    assert p == pytest.approx(fit.p_value()[:, 1], abs=0.05)
    assert p[0] == pytest.approx(0.001)


def test_shrinkage_pulls_towards_zero_and_keeps_signs_and_order() -> None:
    beta, error = np.array([0.06, -0.02, 0.01, 0.0]), np.full(4, 0.02)
    shrunk = shrink(beta, error)
    assert (np.abs(shrunk.mean) <= np.abs(beta)).all()
    assert (np.sign(shrunk.mean) == np.sign(beta)).all()
    assert shrunk.positive[0] > 0.9
    assert shrunk.positive[3] == 0.5 > shrunk.positive[1]
    assert shrunk.mean == pytest.approx(beta * shrunk.tau**2 / (shrunk.tau**2 + 0.02**2))


def test_the_prior_learns_how_large_effects_are_and_never_vanishes() -> None:
    rng = np.random.default_rng(0)
    error = np.full(400, 0.02)
    large = rng.normal(size=400) * np.hypot(0.05, 0.02)
    assert prior_scale(large, error) == pytest.approx(0.05, rel=0.15)
    assert 0 < prior_scale(0.1 * error, error) < 0.01
    assert shrink(np.zeros(3), np.zeros(3)).mean.tolist() == [0, 0, 0]


def test_shrinking_lowers_the_error_of_selected_effects() -> None:
    rng = np.random.default_rng(1)
    true = 0.03 * rng.normal(size=(300, 16))
    seen = true + 0.02 * rng.normal(size=true.shape)
    shrunk = np.array([shrink(row, np.full(16, 0.02)).mean for row in seen])
    best = seen.argmax(axis=1)
    rows = np.arange(300)
    raw_bias = (seen - true)[rows, best].mean()
    assert raw_bias > 0.008  # the winner's curse
    assert abs((shrunk - true)[rows, best].mean()) < 0.35 * raw_bias
    assert np.mean((shrunk - true) ** 2) < 0.85 * np.mean((seen - true) ** 2)


def test_resampled_effects_are_refits_and_spread_like_the_standard_error() -> None:
    data = pairs(n=200, noise=0.3)
    Z, d = data.signs, data.gains[:, 1]
    found = resampled_effects(Z, d, resamples=600, label="x")
    rng = np.random.RandomState(0)
    assert found.shape == (600, 5)
    fit = estimate(data, minimum_adjusting=30)
    assert found.mean(axis=0) == pytest.approx(fit.beta[:, 1], abs=0.01)
    assert found.std(axis=0) == pytest.approx(fit.standard_error[:, 1], rel=0.15)
    draws = rng.randint(0, 200, 200)
    again = np.linalg.lstsq(Z[draws], d[draws], rcond=None)[0]
    weights = np.bincount(draws, minlength=200).astype(float)
    solved = np.linalg.solve((Z * weights[:, None]).T @ Z, Z.T @ (weights * d))
    assert again == pytest.approx(solved)


def test_decision_frequencies_add_up_and_follow_the_evidence() -> None:
    data = pairs(n=240, noise=0.2)
    settings = StandardSettings()
    found = analyse(LAYOUT, data, settings)
    limits = Thresholds.of(settings, found.fit.degrees_of_freedom)
    effects = resampled_effects(data.signs, data.gains[:, 1], resamples=200, label="x")
    frequency = decision_frequency(effects, found.covariance, Roles.of(LAYOUT), limits)
    assert frequency.sum(axis=1) == pytest.approx(np.ones(5))
    assert frequency[0, 2] > 0.95  # keep a
    assert frequency[1, 4] > 0.95  # retire b


def test_intervals_cover_the_truth_in_95_of_100_gates() -> None:
    """2,000 gates: 20 designs, each with 100 draws of the noise as 100 outcomes of one fit."""
    n, gates = 200, 100
    outcomes = (*(f"r_{gate:03d}" for gate in range(gates - 1)), "reward")
    truth = np.array([0.10, 0.05, 0.0, 0.03, -0.05])
    paired, published = np.zeros(5), np.zeros(5)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        shown = masks(LAYOUT, n, seed)
        luck = np.where(rng.random(n) < 0.3, 0.5, 0.1)  # as uneven as outcomes between 0 and 1
        noise = luck[:, None, None] * rng.normal(size=(n, 2, gates))
        scores = (shown @ truth)[:, :, None] + noise
        without = np.full((n, gates), np.nan)
        data = Pairs(tuple(range(n)), LAYOUT.columns, outcomes, shown, scores, without)
        paired += covering(estimate(data, minimum_adjusting=30), truth)
        bare = luck[:, None] * rng.normal(size=(n, gates))
        published += covering(least_squares(shown[:, 0], scores[:, 0] - bare), truth)
    for rates in (paired / 20, published / 20):
        assert (rates >= 0.93).all() and (rates <= 0.97).all()


def covering(fit: Fit, truth: np.ndarray) -> np.ndarray:
    low, high = fit.interval()
    return np.asarray(((low <= truth[:, None]) & (truth[:, None] <= high)).mean(axis=1))


def test_the_t_interval_uses_the_degrees_of_freedom() -> None:
    fit = estimate(pairs(n=30, noise=0.2), minimum_adjusting=30)
    low, high = fit.interval()
    half = stats.t.ppf(0.975, 25) * fit.standard_error
    assert (high - low) / 2 == pytest.approx(half)


def test_resampling_starts_from_the_adjusted_differences() -> None:
    data = pairs(n=300, noise=0.4, bare=300)
    found = analyse(LAYOUT, data, StandardSettings())
    refitted = np.linalg.lstsq(data.signs, found.adjusted_gains, rcond=None)[0]
    assert refitted == pytest.approx(found.beta, abs=1e-12)
    assert not np.allclose(found.adjusted_gains, data.gains[:, 1])


@pytest.mark.parametrize("chunks", [1, 2, 6, 15])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_smallest_gates_are_judged_too(chunks: int, noise: float) -> None:
    """One task more than columns: resamples cannot tell all effects apart, nor the headroom."""
    layout = build_layout(pool_of([f"c{i:02d}" for i in range(chunks)]))
    n = chunks + 1
    data = pairs(n=n, noise=noise, bare=n, effects=np.zeros(chunks), layout=layout)
    settings = StandardSettings(redraws=100, bootstrap=100, minimum_adjusting=1)
    found = analyse(layout, data, settings)
    named = found.decisions.named(layout)
    document = inference_document(layout, found, named, settings, "small")
    json.dumps(document, allow_nan=False)
    for row in document["rows"]:
        assert sum(row["decision_frequency"].values()) == pytest.approx(1.0)


def test_a_resample_that_tells_effects_apart_is_the_same_either_way() -> None:
    data = pairs(n=60, noise=0.3)
    draw = np.random.default_rng(0).integers(0, 60, 60)
    Z, d = data.signs[draw], data.gains[draw, 1]
    gram, moments = (Z.T @ Z)[None], (Z.T @ d)[None]
    either = [_solved(gram, moments, sure=sure)[0] for sure in (True, False)]
    assert either[0] == pytest.approx(np.linalg.lstsq(Z, d, rcond=None)[0])
    assert either[1] == pytest.approx(either[0])
    apart = np.zeros((1, 2, 2)) + 3.0  # two columns that are always shown together
    assert _solved(apart, np.array([[3.0, 3.0]]), sure=True)[0] == pytest.approx([0.5, 0.5])
