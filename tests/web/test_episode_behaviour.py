"""Behaviour by cohort: counts lead to their episodes; same tasks are told from all tasks."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from intraskill_web.core.definitions import definitions
from intraskill_web.episodes.behaviour_metrics import SHOWN
from intraskill_web.episodes.cohorts import BINS, bins, cohorts
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.prepare import prepare
from intraskill_web.episodes.publish import publish
from intraskill_web.experiments.models import Experiment
from tests.web.traces import make_trace


def test_descriptive_and_task_standardised_means_differ_when_the_tasks_do() -> None:
    """Cohort b played a harder task more often; on the same tasks it needs fewer turns."""
    rows = [
        ("a", 1, 4.0),
        ("a", 2, 10.0),
        ("b", 1, 3.0),
        ("b", 2, 9.0),
        ("b", 2, 9.0),
        ("b", 3, 20.0),
    ]
    (a, b), shared = cohorts(rows)
    assert shared == 2
    assert (a.described.n, a.described.mean) == (2, 7.0)
    assert (b.described.n, b.described.mean) == (4, 10.25)
    assert a.standardised is not None and b.standardised is not None
    assert (a.standardised.n, a.standardised.mean, b.standardised.mean) == (2, 7.0, 6.0)
    assert (a.median, round(b.p90, 6)) == (7.0, 16.7)


def test_one_cohort_has_nothing_to_be_standardised_against() -> None:
    [only], shared = cohorts([("a", 1, 4.0), ("a", 2, 5.0)])
    assert (only.standardised, shared) == (None, 0)


@given(st.lists(st.floats(0, 1e6, allow_nan=False) | st.integers(0, 30), max_size=60))
def test_bins_hold_every_value_once(values: list[float]) -> None:
    made = bins(values)
    assert sum(b.count for b in made) == len(values)
    assert len(made) <= BINS


@pytest.fixture
def played(db: None, home: Path) -> Experiment:
    """Two experiments' worth of searches: six episodes, one search each; task 0 twice."""
    experiment = Experiment.objects.create(name="played")
    prepared = []
    for number in range(6):
        trace = make_trace(f"e{number}", number % 3, number // 3, [], success=number % 2 == 0)
        line = json.dumps(trace).encode()
        entry = prepare(line, purpose="bare" if number < 3 else "full", arm="", groups={})
        entry.values["line"] = number
        prepared.append(entry)
    publish(prepared, {"experiment_id": experiment.pk, "round_id": None, "path": "f"})
    return experiment


def test_the_metrics_of_the_specification_are_counted_on_reading(played: Experiment) -> None:
    values = Episode.objects.order_by("pk")[0].behaviour
    assert (values["model_steps"], values["searches"], values["product_opens"]) == (4, 1, 1)
    assert (values["option_selections"], values["tokens_per_turn"]) == (1, 4.0)


def test_every_count_opens_exactly_its_episodes(played: Experiment, viewer_client: Client) -> None:
    answer = viewer_client.get("/episodes/behaviour/?metric=searches&by=purpose")
    assert answer.status_code == 200
    text = " ".join(answer.content.decode().split())
    assert 'href="/episodes/?purpose=bare">3</a>' in text
    assert "Task-standardised: on the 3 tasks of all cohorts" in text
    assert text.count("95 % (normal)") == 2, "each interval names its method"
    assert 'href="/episodes/?behaviour=searches%3A1..1">6</a>' in text
    found = viewer_client.get("/episodes/?behaviour=searches%3A1..1&format=json").json()
    assert found["total"] == 6
    assert viewer_client.get("/episodes/?behaviour=searches:2..&format=json").json()["total"] == 0
    data = viewer_client.get("/episodes/behaviour/?metric=searches&by=purpose&format=json").json()
    assert (data["n"], data["shared_tasks"], len(data["cohorts"])) == (6, 3, 2)


@pytest.mark.parametrize("query", ["q=tarn", "behaviour=x:1", "step=three", "experiment=nosuch"])
def test_odd_requests_are_answered(played: Experiment, viewer_client: Client, query: str) -> None:
    page = viewer_client.get(f"/episodes/behaviour/?{query}")
    assert page.status_code == 200
    told = 'role="alert"' in page.content.decode()
    assert told == (query != "q=tarn")


@pytest.mark.parametrize("query", ["metric=none", "metric=searches&by=xx"])
def test_an_unknown_metric_or_cohort_is_no_other_one(
    played: Experiment, viewer_client: Client, query: str
) -> None:
    answer = viewer_client.get(f"/episodes/behaviour/?{query}")
    assert answer.status_code == 400
    assert "is not one of" in answer.content.decode()


def test_it_opens_with_the_newest_experiment_that_played_and_one_purpose(
    played: Experiment, viewer_client: Client
) -> None:
    Experiment.objects.create(name="idle")
    data = viewer_client.get("/episodes/behaviour/?format=json").json()
    assert (data["filter"], data["n"]) == ({"experiment": "played", "purpose": "bare"}, 3)
    text = viewer_client.get("/episodes/behaviour/").content.decode()
    assert '<option value="played" selected>' in text
    assert '<option value="bare" selected>' in text
    assert "pooled" not in text
    assert "needs two cohorts" in text and "of all cohorts" not in text
    everything = viewer_client.get("/episodes/behaviour/?by=round").content.decode()
    assert "Episodes of all experiments and purposes are pooled" in everything


@pytest.mark.parametrize(("metric", "mean"), [("success", 0.5), ("reward", None)])
def test_success_and_reward_are_described_and_lead_to_their_episodes(
    played: Experiment, viewer_client: Client, metric: str, mean: float | None
) -> None:
    path = f"/episodes/behaviour/?metric={metric}&by=experiment"
    data = viewer_client.get(f"{path}&format=json").json()
    assert data["n"] == 6
    if mean is not None:
        assert data["cohorts"][0]["mean"] == mean
    links = re.findall(r'href="(/episodes/\?behaviour=[^"]+)">(\d+)</a>',
                       viewer_client.get(path).content.decode())  # fmt: skip
    assert sum(int(n) for _address, n in links) == 6
    for address, n in links:
        found = viewer_client.get(f"{unescape(address)}&format=json").json()
        assert found["total"] == int(n)


def test_a_trace_too_odd_to_be_walked_has_no_behaviour(db: None, home: Path) -> None:
    trace = make_trace("odd", 1, 0, [])
    trace["steps"][0]["environment"] = [1]
    entry = prepare(json.dumps(trace).encode(), purpose="bare", arm="bare", groups={})
    assert entry.values["behaviour"] == {}


def test_every_metric_is_named_by_what_it_counts() -> None:
    for language in ("en", "zh-hans"):
        known = [k for k in definitions(language) if k.startswith("behaviour_")]
        assert known == [f"behaviour_{metric}" for metric in SHOWN]


PROFILES = "/episodes/behaviour/?metric=searches&by=purpose&experiment=played"


def test_turns_and_tokens_are_kept_by_the_page_that_they_began_on(
    played: Experiment, viewer_client: Client
) -> None:
    phases = Episode.objects.order_by("pk")[0].behaviour["phases"]
    # nothing tells the first page; then results, product, product; nothing to repair
    assert phases == [0, 0, 1, 4, 2, 8, 1, 4, 0, 0]
    path = "/episodes/behaviour/?metric=turns_product_detail&by=purpose"
    data = viewer_client.get(f"{path}&format=json").json()
    assert [(c["cohort"], c["mean"]) for c in data["cohorts"]] == [("full", 2.0), ("bare", 2.0)]
    for asked, count in (("turns_product_detail:2..2", 6), ("tokens_search_results:5..", 0)):
        found = viewer_client.get(f"/episodes/?behaviour={asked}&format=json").json()
        assert found["total"] == count
    phase = data["profiles"][0]["phases"]["product_detail"]
    assert phase == {"turns": 6, "turns_per_episode": 2.0, "tokens": 24, "tokens_per_turn": 4.0}


def test_a_profile_says_how_many_had_any_and_its_counts_open_their_episodes(
    played: Experiment, viewer_client: Client
) -> None:
    row = Episode.objects.get(purpose="bare", line=0)
    row.behaviour |= {"product_revisits": 2, "backtracks": 1}
    row.termination = "action_limit"
    row.save()
    data = viewer_client.get(f"{PROFILES}&format=json").json()
    bare = next(p for p in data["profiles"] if p["cohort"] == "bare")
    assert (bare["n"], bare["tasks"], bare["walked"], bare["token_complete"]) == (3, 3, 3, 3)
    assert bare["pooled_tokens_per_turn"] == 4.0
    assert bare["terminations"] == {"purchase": 2, "action_limit": 1}
    assert bare["shares"]["any_product_revisits"]["n"] == 1
    assert bare["shares"]["any_backtracks"]["share"] == 1 / 3
    assert bare["shares"]["any_option_changes"]["n"] == 0
    text = unescape(viewer_client.get(PROFILES).content.decode())
    opened = "/episodes/?experiment=played&purpose=bare&scored=yes"
    for more, n in (("behaviour=product_revisits%3A1..", 1), ("termination=purchase", 2)):
        assert f'href="{opened}&{more}">{n}</a>' in text
        assert viewer_client.get(f"{opened}&{more}&format=json").json()["total"] == n
    narrowed = viewer_client.get(f"{PROFILES}&behaviour=backtracks:1..").content.decode()
    assert "product_revisits%3A1.." not in narrowed  # a list cannot ask for both


def test_episodes_that_were_read_without_phases_say_so_and_get_them_when_read_again(
    played: Experiment, viewer_client: Client
) -> None:
    for row in Episode.objects.all():
        del row.behaviour["phases"]
        row.save()
    assert "read again to count them" in viewer_client.get(PROFILES).content.decode()
    data = viewer_client.get(f"{PROFILES}&format=json").json()
    assert data["profiles"][0]["phases"] == {} and data["n"] == 6
    path = "/episodes/behaviour/?metric=turns_other&by=purpose&format=json"
    assert viewer_client.get(path).json()["n"] == 0
