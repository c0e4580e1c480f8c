"""A long experiment, 100 rounds of 80 steps: pages stay quick and ask a fixed number of queries.

Times are seconds of the CPU, the quickest of several answers, because a machine that tests share
with others is slow by accident and never fast by accident.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from benchmarks.pages_data import ROUNDS, long_experiment
from intraskill_web.experiments.models import Experiment

OVERVIEW, ROUND = "/experiments/long/", f"/experiments/long/rounds/{ROUNDS - 1}/"
QUERIES = 12
OVERVIEW_S, POLL_S = 0.100, 0.005


@pytest.fixture
def long(db: None) -> Experiment:
    """Rounds 0 to 98 are done, the last is in training."""
    return long_experiment()


def quickest(act: Callable[[], Any], times: int = 7) -> float:
    """Seconds of the quickest of several calls, the first not counted."""
    act()
    taken = []
    for _ in range(times):
        began = time.process_time()
        act()
        taken.append(time.process_time() - began)
    return min(taken)


def test_pages_and_polls_of_a_long_experiment_are_quick_and_ask_little(
    long: Experiment,
    viewer_client: Client,
    django_assert_max_num_queries: Any,
    record_property: Callable[[str, object], None],
) -> None:
    for path in (OVERVIEW, ROUND, "/"):
        with django_assert_max_num_queries(QUERIES):
            assert viewer_client.get(path).status_code == 200
    seconds = {
        "overview": quickest(lambda: viewer_client.get(OVERVIEW)),
        "round": quickest(lambda: viewer_client.get(ROUND)),
    }
    for name, path in (("overview", OVERVIEW), ("round", ROUND)):
        tag = viewer_client.get(f"{path}?part=live")["ETag"]

        def poll(path: str = path, tag: str = tag) -> None:
            answer = viewer_client.get(f"{path}?part=live", headers={"If-None-Match": tag})
            assert answer.status_code == 304

        seconds[f"{name} poll"] = quickest(poll, 20)
    record_property("seconds", seconds)
    assert seconds["overview"] < OVERVIEW_S, seconds
    assert seconds["overview poll"] < POLL_S, seconds
    assert seconds["round poll"] < POLL_S, seconds
