"""Every page opens for a viewer, within its budget of queries, as HTML and as data."""

from __future__ import annotations

import json
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from intraskill_web.core.middleware import POLICY
from intraskill_web.experiments.queries import round_status
from tests.web.addresses import pages
from tests.web.factories import Made
from tests.web.html import Page
from tests.web.queries import questions

MORE = [  # what a page shows otherwise by its parameters, beside every page of the URLconf
    "/experiments/demo/rounds/1/?window=last",
    "/experiments/demo/rounds/0/panels/frontier/",
    "/experiments/demo/rounds/0/panels/health/",
    "/experiments/demo/rounds/0/panels/gate/",
    "/experiments/demo/zoom/?axis=update",
    "/experiments/demo/skills/0/",
    "/skills/?experiment=demo",
    "/episodes/?experiment=demo&purpose=train&step=3",
    "/episodes/behaviour/?by=step",
]
BUDGET = 12
OPEN = {"/login/"}  # to everybody
NO_DATA = {*OPEN, "/password/", "/experiments/demo/rounds/0/stages/train/skip/"}  # forms only
OPERATORS = [  # a viewer may not open
    "/new/",
    "/experiments/demo/next/",
    "/experiments/demo/rounds/0/stages/train/retry/",
    "/experiments/demo/rounds/0/stages/train/skip/",
    "/experiments/demo/skills/1/override/",
    "/inbox/channels/new/email/",
]
FORMS = (
    "/login/",
    "/password/",
    "/sweeps/",
    "/reports/",
    "/evaluations/",
    "/preflight/",
    "/replay/",
    "/inbox/",
    "/inbox/channels/",
)  # pages that take what is typed in them

pytestmark = pytest.mark.usefixtures("without_checks")


def faults_of(client: Client, address: str) -> list[str]:
    """What is wrong with a page as ``client`` sees it."""
    with CaptureQueriesContext(connection) as queries:
        response = client.get(address)
    asked, text = questions(queries), response.content.decode()
    faults = Page(text).policy_faults()
    if response.status_code != 200:
        faults.append(f"answers {response.status_code}")
    if len(asked) > BUDGET:
        faults.append(f"{len(asked)} queries: {[sql[:120] for sql in asked]}")
    if "/zoom/" not in address and response["Content-Security-Policy"] != POLICY:
        faults.append("another policy")
    if address not in NO_DATA:
        twin = client.get(f"{address}{'&' if '?' in address else '?'}format=json")
        if twin["Content-Type"] != "application/json" or not json.loads(twin.content):
            faults.append("no JSON twin")
    return faults


def test_every_page_takes_at_most_twelve_queries_holds_nothing_inline_and_has_a_json_twin(
    made: Made, viewer_client: Client, operator_client: Client
) -> None:
    every = [*pages(made, operator_client), *MORE]
    closed = {p for p in every if p in OPERATORS or re.fullmatch(r"/inbox/channels/\d+/", p)}
    faults = {f"{path}, operator": faults_of(operator_client, path) for path in every}
    for path in every:
        if path not in closed:
            faults[f"{path}, viewer"] = faults_of(viewer_client, path)
    assert len(every) > 50
    assert {path: found for path, found in faults.items() if found} == {}
    assert {path for path in closed if viewer_client.get(path).status_code != 403} == set()


def test_who_is_not_logged_in_is_sent_to_the_login_from_every_page(
    made: Made, anonymous: Client, operator_client: Client
) -> None:
    for path in {*pages(made, operator_client), *MORE} - OPEN:
        response = anonymous.get(path)
        assert response.status_code == 302, path
        assert response["Location"].startswith("/login/?next="), path


def test_pages_without_a_form_only_read(made: Made, operator_client: Client) -> None:
    reading = [
        path
        for path in [*pages(made, operator_client), *MORE]
        if path not in OPERATORS and not path.partition("?")[0].endswith(FORMS)
        and not re.fullmatch(r"/inbox/channels/\d+/", path)
    ]  # fmt: skip
    assert len(reading) > 35
    answers = {path: operator_client.post(path).status_code for path in reading}
    assert {path: status for path, status in answers.items() if status != 405} == {}


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


def test_the_round_twin_says_what_the_command_says(made: Made, viewer_client: Client) -> None:
    data = viewer_client.get("/experiments/demo/rounds/1/?format=json").json()
    status = json.loads(json.dumps(round_status(made.rounds[1])))
    assert {key: data[key] for key in status} == status
    kinds = ["freeze", "train", "analyse", "validate", "gate", "select"]
    assert [stage["stage"] for stage in status["stages"]] == kinds
    assert [stage["attempt"] for stage in status["stages"][:3]] == [1, 1, None]


def test_the_title_tells_the_progress(made: Made, viewer_client: Client) -> None:
    text = viewer_client.get("/experiments/demo/rounds/1/").content.decode()
    title = " ".join(text.split("<title>")[1].split("</title>")[0].split())
    assert title == "7/12 · 4 min 34 s left · Train · Round 1 · demo · IntraSkill"
