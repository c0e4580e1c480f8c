"""Every page opens for a viewer, within its budget of queries, as HTML and as data."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from intraskill_web.core.middleware import POLICY
from intraskill_web.episodes.models import Episode
from intraskill_web.experiments.models import Attempt
from tests.web.factories import Made
from tests.web.html import Page
from tests.web.queries import questions

PATHS = [
    "/",
    "/experiments/demo/",
    "/experiments/demo/rounds/0/",
    "/experiments/demo/rounds/1/",
    "/experiments/demo/rounds/1/?window=last",
    "/experiments/demo/rounds/0/gate/",
    "/experiments/demo/rounds/1/gate/",
    "/experiments/demo/rounds/0/panels/outcome/",
    "/experiments/demo/rounds/0/panels/inclusion/",
    "/experiments/demo/rounds/0/panels/frontier/",
    "/experiments/demo/rounds/0/panels/health/",
    "/experiments/demo/rounds/0/panels/gate/",
    "/experiments/demo/zoom/",
    "/experiments/demo/zoom/?axis=update",
    "/experiments/demo/skills/0/",
    "/experiments/demo/skills/1/",
    "/gates/",
    "/skills/",
    "/skills/?experiment=demo",
    "/episodes/",
    "/episodes/?experiment=demo&purpose=train&step=3",
    "/episodes/EPISODE/",
    "/jobs/",
    "/jobs/attempts/ATTEMPT/",
    "/help/",
    "/help/contribution/",
]
BUDGET = 12


def real(path: str) -> str:
    """``path`` with ids of rows that exist."""
    episode = Episode.objects.filter(purpose="train").order_by("pk")[5]
    attempt = Attempt.objects.order_by("pk")[0]
    return path.replace("EPISODE", str(episode.pk)).replace("ATTEMPT", str(attempt.pk))


@pytest.mark.parametrize("path", PATHS)
def test_a_viewer_opens_every_page_in_at_most_twelve_queries(
    made: Made, viewer_client: Client, path: str
) -> None:
    address = real(path)
    with CaptureQueriesContext(connection) as queries:
        response = viewer_client.get(address)
    assert response.status_code == 200
    asked = questions(queries)
    assert len(asked) <= BUDGET, [sql[:120] for sql in asked]


@pytest.mark.parametrize("path", PATHS)
def test_no_page_holds_anything_inline(made: Made, viewer_client: Client, path: str) -> None:
    response = viewer_client.get(real(path))
    assert Page(response.content.decode()).policy_faults() == []
    if "/zoom/" not in path:
        assert response["Content-Security-Policy"] == POLICY


@pytest.mark.parametrize("path", PATHS)
def test_every_page_has_a_json_twin(made: Made, viewer_client: Client, path: str) -> None:
    address = real(path)
    response = viewer_client.get(f"{address}{'&' if '?' in address else '?'}format=json")
    assert response["Content-Type"] == "application/json"
    assert json.loads(response.content)


@pytest.mark.parametrize("path", PATHS)
def test_who_is_not_logged_in_is_sent_to_the_login(
    made: Made, anonymous: Client, path: str
) -> None:
    response = anonymous.get(real(path))
    assert response.status_code == 302
    assert response["Location"].startswith("/login/?next=")


@pytest.mark.parametrize("path", PATHS)
def test_pages_only_read(made: Made, operator_client: Client, path: str) -> None:
    assert operator_client.post(real(path)).status_code == 405


@pytest.mark.parametrize(
    "path",
    [
        "/experiments/none/",
        "/experiments/demo/rounds/9/",
        "/experiments/demo/rounds/9/gate/",
        "/experiments/demo/rounds/0/panels/none/",
        "/experiments/demo/skills/9/",
        "/experiments/demo/?format=csv&panel=none",
        "/episodes/999999999/",
        "/jobs/attempts/999999999/",
        "/help/none/",
    ],
)
def test_what_does_not_exist_is_a_404(made: Made, viewer_client: Client, path: str) -> None:
    assert viewer_client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("path", "first"),
    [
        (
            "/experiments/demo/?format=csv&panel=survival",
            "skill_id,round,coefficient,low,high,status",
        ),
        (
            "/experiments/demo/rounds/0/panels/outcome/?format=csv",
            "step,episodes,scored,success_rate,reward_mean,groups",
        ),
        (
            "/experiments/demo/rounds/0/gate/?format=csv",
            "rank,intervention_id,logical_chunk_id,operation,coefficient,se,low,high,status,"
            "with_n,without_n",
        ),
        (
            "/experiments/demo/skills/0/?format=csv",
            "order,skill_id,title,beta,effect,rho,content_sha256,content",
        ),
    ],
)
def test_charts_have_a_csv_twin(made: Made, viewer_client: Client, path: str, first: str) -> None:
    response = viewer_client.get(path)
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    lines = response.content.decode().splitlines()
    assert lines[0] == first
    assert len(lines) > 5


def test_the_round_twin_has_the_keys_of_the_command(made: Made, viewer_client: Client) -> None:
    data = viewer_client.get("/experiments/demo/rounds/1/?format=json").json()
    assert {"experiment", "round", "state", "stages"} <= data.keys()
    assert {"stage", "state", "attempt", "done", "total", "eta_seconds"} <= data["stages"][1].keys()
    assert [s["stage"] for s in data["stages"]] == [
        "freeze",
        "train",
        "analyse",
        "validate",
        "gate",
        "select",
    ]


def test_the_title_tells_the_progress(made: Made, viewer_client: Client) -> None:
    text = viewer_client.get("/experiments/demo/rounds/1/").content.decode()
    title = " ".join(text.split("<title>")[1].split("</title>")[0].split())
    assert title == "7/12 · 4 min 34 s left · Train · Round 1 · demo · IntraSkill"
