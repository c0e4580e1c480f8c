"""Series for the zoom page: reduced to the pixels asked for, whatever is asked."""

from __future__ import annotations

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from intraskill_web.core.finders import NAME, PlotlyFinder
from intraskill_web.monitoring.models import MetricPoint
from tests.web.factories import STEPS, Made

PATH = "/experiments/demo/series/"


def test_whole_series_by_short_or_full_name(made: Made, viewer_client: Client) -> None:
    for name in ("success_rate", "rollout/shopsim/success_rate"):
        data = viewer_client.get(f"{PATH}?metric={name}").json()
        (series,) = data["series"]
        points = MetricPoint.objects.filter(name="rollout/shopsim/success_rate").order_by("step")
        if name == "success_rate":
            assert series["x"] == [float(p.step) for p in points]
            assert series["last"] == [p.value for p in points]
            assert data["shown"] == f"{len(points)} of {len(points)} points"


def test_a_window_and_few_pixels(made: Made, viewer_client: Client) -> None:
    data = viewer_client.get(f"{PATH}?metric=success_rate&x0=3&x1=9&px=10").json()
    (series,) = data["series"]
    assert series["x"][0] == 3.0
    assert series["x"][-1] == 9.0
    assert len(series["x"]) <= 6
    assert series["of"] == STEPS + 7


def test_updates_are_an_axis_of_their_own(made: Made, viewer_client: Client) -> None:
    data = viewer_client.get(f"{PATH}?axis=update&metric=loss").json()
    assert data["x_label"] == "optimiser update"
    assert data["series"][0]["x"][:3] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("query", "status"),
    [("", 200), ("metric=none", 400), ("metric=success_rate&px=-5", 200),
     ("metric=success_rate&px=nan", 400), ("px=1e99", 400),
     ("metric=success_rate&x0=a&x1=b", 400),
     ("metric=success_rate&x0=9&x1=1", 200)],
)  # fmt: skip
def test_senseless_questions_get_a_plain_answer(
    made: Made, viewer_client: Client, query: str, status: int
) -> None:
    assert viewer_client.get(f"{PATH}?{query}").status_code == status


def test_plotly_comes_from_the_installed_wheel() -> None:
    assert str(finders.find(NAME)).endswith("plotly.min.js")
    assert not finders.find("plotly/other.js")
    assert [name for name, _storage in PlotlyFinder().list([])] == ["plotly.min.js"]
