"""Charts are text made from numbers: where things stand, and that nothing breaks out of an
attribute.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intraskill_web.charts.panel import (
    Band,
    Divider,
    Frame,
    Line,
    Marker,
    Stack,
    bar_panel,
    line_panel,
)
from intraskill_web.charts.rows import (
    ForestScale,
    forest_axis,
    forest_row,
    inclusion_row,
    signed,
    sparkline,
    status_shape,
)
from intraskill_web.charts.scale import Scale, decimals, rate_range, ticks, whole_ticks, widen
from intraskill_web.charts.svg import Markup, join, number, tag

finite = st.floats(-1e6, 1e6, allow_nan=False)


def frame(**changes: object) -> Frame:
    values: dict[str, object] = {
        "x_range": (0.0, 10.0),
        "y_range": (0.0, 1.0),
        "title": "A <title>",
    }
    return Frame(**(values | changes))  # type: ignore[arg-type]


def test_attributes_and_texts_are_escaped() -> None:
    made = tag("text", '<b>"&', class_='a"><script>', text_anchor="end", x=1.50)
    assert made == (
        '<text class="a&quot;&gt;&lt;script&gt;" text-anchor="end" x="1.5">'
        "&lt;b&gt;&quot;&amp;</text>"
    )


def test_finished_markup_is_not_escaped_again_and_templates_know_it() -> None:
    inner = tag("rect", width=5)
    assert tag("g", inner) == '<g><rect width="5"/></g>'
    assert join(inner, "<x>") == '<rect width="5"/>&lt;x&gt;'
    assert Markup("<a>").__html__() == "<a>"


def test_an_attribute_of_none_is_left_out() -> None:
    assert tag("a", href=None, x=0.0) == '<a x="0"/>'


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1"), (0.125, "0.12"), (-0.001, "0"), (12.5, "12.5"), (100.0, "100")]
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value) == text


def test_a_scale_maps_its_ends_and_clamps_only_when_asked() -> None:
    scale = Scale(0.4, 1.0, 200.0, 0.0)
    assert scale(0.4) == 200.0
    assert scale(1.0) == 0.0
    assert scale(1.6) == pytest.approx(-200.0)
    assert scale.clamp(1.6) == 0.0


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 1.0, [0.0, 0.25, 0.5, 0.75, 1.0]),
        (0.4, 1.0, [0.4, 0.6, 0.8, 1.0]),
        (0.0, 12.0, [0.0, 2.5, 5.0, 7.5, 10.0]),
        (-0.1, 0.1, [-0.1, -0.05, 0.0, 0.05, 0.1]),
    ],
)
def test_ticks_are_round(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == expected


@given(low=finite, span=st.floats(1e-3, 1e6), count=st.integers(1, 8))
def test_ticks_lie_inside_and_ascend(low: float, span: float, count: int) -> None:
    found = ticks(low, low + span, count)
    assert found == sorted(set(found))
    tolerance = 1e-6 * max(abs(low), span, 1.0)
    assert all(low - tolerance <= value <= low + span + tolerance for value in found)


def test_an_axis_without_extent_is_refused() -> None:
    with pytest.raises(ValueError, match="low < high"):
        ticks(1.0, 1.0)


@given(st.lists(finite, min_size=1, max_size=20))
def test_a_widened_range_holds_its_values(values: list[float]) -> None:
    low, high = widen(values)
    assert low < high
    slack = 1e-6 * (high - low)
    assert low - slack <= min(values)
    assert max(values) <= high + slack


@given(st.lists(st.floats(0.0, 1.0), max_size=20))
def test_the_range_of_rates_stays_between_zero_and_one(values: list[float]) -> None:
    low, high = rate_range(values)
    assert 0.0 <= low < high <= 1.0
    assert all(low <= value <= high for value in values)


@pytest.mark.parametrize(
    ("values", "places"),
    [([0, 5, 10], 0), ([0.0, 0.25], 2), ([0.0, 0.025, 0.05], 3), ([0.2, 0.4], 1)],
)
def test_decimals_show_every_tick_exactly(values: list[float], places: int) -> None:
    assert decimals(values) == places


@pytest.mark.parametrize(
    ("value", "text"), [(0.0738, "+0.074"), (-0.0111, "−0.011"), (0.0, "0.000"), (-0.0001, "0.000")]
)
def test_effects_have_a_sign_and_a_true_minus(value: float, text: str) -> None:
    assert signed(value) == text


def test_a_line_panel_is_wellformed_and_says_what_it_shows() -> None:
    made = line_panel(
        frame(dividers=(Divider(5.0, "round 0", "round 1"),), note="3 steps to go"),
        [Line([(0, 0.5), (5, 0.6), (10, 1.0)], "l1", "success", pale_before=5.0)],
        bands=[Band([0, 10], [0.1, 0.2], [0.3, 0.4])],
        markers=[Marker(5, 0.6, "diamond", "hollow", "/x/?a=1&b=2", "bare")],
    )
    root = ElementTree.fromstring(made)
    assert root.get("aria-label") == "A <title>"
    assert root.get("class") == "ch named"
    assert "/x/?a=1&amp;b=2" in made
    assert "3 steps to go" in made
    assert made.count("round ") == 2


def test_the_pale_part_and_the_strong_part_share_their_border_point() -> None:
    made = line_panel(
        frame(height=100), [Line([(0, 0), (4, 0.4), (6, 0.6), (10, 1)], "l1", "", 5.0)]
    )
    assert re.findall(r'class="([^"]*)" d="([^"]*)"', made) == [
        ("l1 old", "M0 100L400 60"),
        ("l1", "M400 60L600 40L1000 0"),
    ]


def test_a_single_point_is_a_point_and_no_line() -> None:
    made = line_panel(frame(), [Line([(1, 0.5)])])
    assert "<path" not in made
    assert made.count("<circle") == 1


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0.0, 2.0, ["0", "1", "2"]),
        (20.0, 40.0, ["20", "25", "30", "35", "40"]),
        (0.0, 12.0, ["0", "5", "10"]),
        (1.0, 1.0, ["1"]),  # the first step of a run
    ],
)
def test_axes_that_count_have_whole_ticks(low: float, high: float, texts: list[str]) -> None:
    assert [text for _value, text in whole_ticks(low, high)] == texts


def test_end_labels_do_not_overlap() -> None:
    lines = [Line([(0, 0.5), (10, 0.5)], "l1", "one"), Line([(0, 0.5), (10, 0.51)], "l2", "two")]
    made = line_panel(frame(), lines)
    rows = [float(y) for y in re.findall(r'class="lb"[^>]* y="([\d.]+)"', made)]
    assert len(rows) == 2
    assert abs(rows[0] - rows[1]) >= 14


def test_bars_stack_and_link() -> None:
    parts = [(3, "b1", "/a", "three"), (1, "b2", None, "one"), (0, "b1", "/c", "none")]
    made = bar_panel(frame(y_range=(0.0, 8.0), height=80), [Stack(2.0, parts)])
    ElementTree.fromstring(made)
    assert re.findall(r'y="(\d+)" height="(\d+)"', made)[-2:] == [("50", "30"), ("40", "10")]
    assert 'href="/a"' in made
    assert "/c" not in made


def test_a_forest_scale_is_symmetric_and_holds_all_ends() -> None:
    scale = ForestScale.holding([-0.02, 0.1, 0.05])
    assert scale.at(0.0) == 50.0
    assert 0.0 < scale.at(-0.1) < scale.at(0.1) < 100.0
    assert scale.at(5.0) == 100.0


def test_each_status_has_a_shape_of_its_own() -> None:
    shapes = [
        status_shape(s) for s in ("selected", "retired", "non_positive", "rewrite_loser", "held")
    ]
    assert len(set(shapes)) == 5


@pytest.mark.parametrize("end", [0.0942, 0.2, 0.5, 3.0])
def test_the_labels_of_a_forest_axis_end_where_the_drawing_does(end: float) -> None:
    scale = ForestScale.holding([end])
    drawn = ElementTree.fromstring(str(forest_axis(scale)))
    for text in drawn.iter("text"):
        at, anchor = float(text.get("x", "").rstrip("%")), text.get("text-anchor")
        assert 5 <= at <= 95 if anchor == "middle" else (at, anchor) in [(0, "start"), (100, "end")]
    assert [text.text for text in drawn.iter("text")].count("0") == 1


def test_a_forest_row_draws_whiskers_only_with_an_interval() -> None:
    scale = ForestScale(0.1)
    assert 'class="ci' in forest_row(scale, 0.05, (0.0, 0.1), "selected", "x")
    assert 'class="ci' not in forest_row(scale, 0.05, None, "selected", "x")


@pytest.mark.parametrize(("observed", "css"), [(0.5, 'class="dot"'), (0.7, 'class="dot out"')])
def test_a_rate_outside_its_band_is_marked(observed: float, css: str) -> None:
    assert css in inclusion_row(observed, 0.52, (0.45, 0.58))


@given(st.lists(finite, max_size=30))
def test_a_sparkline_never_fails(values: list[float]) -> None:
    made = sparkline(values)
    if values:
        ElementTree.fromstring(made)
    else:
        assert made == ""
