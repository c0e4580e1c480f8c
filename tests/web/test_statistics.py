"""Intervals, bands, outliers and reduction, against exact values and a library."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from intraskill_web.monitoring.buckets import reduce
from intraskill_web.monitoring.inclusion import SKILL_FREE, StepCount, inclusion_rows
from intraskill_web.monitoring.series import Series
from intraskill_web.monitoring.signals.training import lasting
from intraskill_web.monitoring.statistics import (
    binomial_band,
    binomial_quantile,
    outliers,
    trailing_mean,
    wilson,
)


def test_wilson_intervals_are_those_of_the_textbook() -> None:
    assert wilson(8, 10) == pytest.approx((0.4901624, 0.9433178), abs=1e-6)
    assert wilson(0, 10)[0] == 0.0
    assert wilson(10, 10)[1] == pytest.approx(1.0)


@given(
    n=st.integers(1, 400),
    p=st.floats(0.0, 1.0),
    probability=st.sampled_from([0.025, 0.5, 0.975]),
)
def test_binomial_quantiles_are_those_of_scipy(n: int, p: float, probability: float) -> None:
    ours, theirs = binomial_quantile(n, p, probability), int(binom.ppf(probability, n, p))
    # On a step of the distribution function the two may fall on different sides of rounding.
    assert ours == max(theirs, 0) or abs(binom.cdf(min(ours, theirs), n, p) - probability) < 1e-9


def test_a_band_of_242_groups_around_0519() -> None:
    low, high = binomial_band(242, 0.519)
    assert (round(low, 3), round(high, 3)) == (0.455, 0.583)


def test_a_band_needs_a_group() -> None:
    with pytest.raises(ValueError, match="at least one trial"):
        binomial_band(0, 0.5)


def test_trailing_means_skip_what_is_unknown() -> None:
    assert trailing_mean([1.0, None, 3.0, 5.0], 2) == [1.0, 1.0, 3.0, 4.0]
    assert trailing_mean([None, 2.0], 5) == [None, 2.0]


def test_outliers_are_what_left_the_usual_range() -> None:
    assert outliers([1.0, 1.1, 0.9, 1.0, 9.0, 1.05]) == [4]
    assert outliers([1.0] * 6) == []
    assert outliers([1.0, 9.0]) == []


points = st.lists(
    st.tuples(st.integers(0, 10_000), st.floats(-1e3, 1e3)), unique_by=lambda p: p[0], max_size=300
).map(sorted)


@given(points=points, buckets=st.integers(1, 40))
def test_a_reduced_series_keeps_every_extreme_and_both_ends(
    points: list[tuple[float, float]], buckets: int
) -> None:
    made = reduce(points, buckets)
    assert len(made.x) <= buckets + 1
    assert made.x == sorted(made.x)
    assert made.of == len(points)
    if points:
        values = [y for _x, y in points]
        assert (min(made.low), max(made.high)) == (min(values), max(values))
        assert (made.x[0], made.x[-1]) == (points[0][0], points[-1][0])
        assert (made.last[0], made.last[-1]) == (points[0][1], points[-1][1])


def test_the_window_is_cut_before_reducing() -> None:
    made = reduce([(float(i), float(i % 10)) for i in range(1000)], 10, (500.0, 509.0))
    assert made.x == [float(i) for i in range(500, 510)]
    assert made.last == [float(i) for i in range(10)]
    assert (made.shown, made.of) == (10, 1000)


def test_reducing_needs_a_bucket() -> None:
    with pytest.raises(ValueError, match="at least one bucket"):
        reduce([(0.0, 0.0)], 0)


def series() -> Series:
    return Series(
        {
            "group_count": {1: 32.0, 2: 32.0},
            "skill_free_group_rate": {1: 0.25, 2: 0.125},
            "chunk/a/inclusion_rate": {1: 12 / 24, 2: 14 / 28},
            "chunk/b/inclusion_rate": {2: 1.0},
        }
    )


def test_counts_behind_rates_are_recovered_exactly() -> None:
    free, a, b = inclusion_rows(series(), 0.2, {"a": 0.5, "b": 0.3})
    assert (free.skill_id, free.shown, free.n) == (SKILL_FREE, 12, 64)
    assert (a.shown, a.n, a.observed, a.verdict) == (26, 52, 0.5, "in")
    assert (b.shown, b.n, b.verdict) == (28, 28, "above")


def test_skill_free_groups_are_not_in_the_denominator_of_a_chunk() -> None:
    _free, a, _b = inclusion_rows(series(), 0.2, {"a": 0.5, "b": 0.3})
    assert [count.n for count in a.counts] == [24, 28]


def test_a_window_takes_the_last_steps_only() -> None:
    free, a, _b = inclusion_rows(series(), 0.2, {"a": 0.5, "b": 0.3}, last=1)
    assert (free.n, a.n) == (32, 28)


def test_before_any_group_there_is_no_verdict() -> None:
    (free,) = inclusion_rows(Series(), 0.2, {})
    assert (free.observed, free.band, free.verdict) == (None, None, "")


def test_a_signal_needs_three_steps_in_a_row_outside() -> None:
    bad = [StepCount(i, 2, 20) for i in range(3)]
    assert lasting(bad, 0.5) == "below"
    assert lasting(bad[:2], 0.5) == ""
    assert lasting([*bad, StepCount(4, 60, 60)], 0.5) == ""
    assert lasting([StepCount(i, 19, 20) for i in range(4)], 0.5) == "above"
