"""A long experiment, 100 rounds of 80 steps: pages ask a fixed number of queries, polls no page.

How long they take is measured by ``benchmarks/pages.py``.
"""

from __future__ import annotations

from typing import Any

from django.test import Client

from benchmarks.pages_data import ROUNDS, long_experiment

OVERVIEW, ROUND = "/experiments/long/", f"/experiments/long/rounds/{ROUNDS - 1}/"
QUERIES, POLL_QUERIES = 12, 3


def test_pages_and_polls_of_a_long_experiment_ask_little(
    db: None, viewer_client: Client, django_assert_max_num_queries: Any
) -> None:
    long_experiment()  # rounds 0 to 98 are done, the last is in training
    for path in (OVERVIEW, ROUND, "/"):
        with django_assert_max_num_queries(QUERIES):
            assert viewer_client.get(path).status_code == 200
    for path in (OVERVIEW, ROUND):
        tag = viewer_client.get(f"{path}?part=live")["ETag"]
        with django_assert_max_num_queries(POLL_QUERIES):
            answer = viewer_client.get(f"{path}?part=live", headers={"If-None-Match": tag})
        assert answer.status_code == 304 and not answer.content
