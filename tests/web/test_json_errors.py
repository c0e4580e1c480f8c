"""Whoever asks for JSON gets JSON when something is refused, missing or broken; others a page."""

from __future__ import annotations

import html

import pytest
from django.db import OperationalError
from django.test import Client

from intraskill_web.experiments import new_views, views
from intraskill_web.experiments.models import Experiment
from tests.web.factories import Made

JSON = {"Accept": "application/json"}


@pytest.fixture
def experiment(db: None) -> Experiment:
    return Experiment.objects.create(name="mine", rounds_planned=2)


def refused(answer, status: int) -> str:  # type: ignore[no-untyped-def]
    """The error of an answer that refuses in JSON."""
    assert answer.status_code == status
    assert answer["Content-Type"] == "application/json"
    data = answer.json()
    assert data["ok"] is False and set(data) == {"ok", "error"}
    return str(data["error"])


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/experiments/nosuch/", "no such experiment"),
        ("/experiments/nosuch/rounds/0/gate/", "known: mine"),
        ("/experiments/mine/rounds/7/", "no such round"),
        ("/nothing/here/", "/nothing/here/"),
        ("/episodes/99999/", "/episodes/99999/"),
    ],
)
def test_what_is_missing_is_named(
    experiment: Experiment, viewer_client: Client, path: str, words: str
) -> None:
    assert words in refused(viewer_client.get(f"{path}?format=json"), 404)
    assert words in refused(viewer_client.get(path, headers=JSON), 404)
    page = viewer_client.get(path)
    assert page.status_code == 404 and page["Content-Type"].startswith("text/html")
    assert words in html.unescape(page.content.decode())


def test_a_round_that_is_planned_is_not_there_yet(
    experiment: Experiment, viewer_client: Client
) -> None:
    page = viewer_client.get("/experiments/mine/rounds/0/")
    assert page.status_code == 404
    assert "is planned and has not begun" in page.content.decode()
    assert 'href="/experiments/mine/"' in page.content.decode()


@pytest.mark.parametrize("number", [2**63, 10**30])
@pytest.mark.parametrize(
    "path",
    [
        "/experiments/mine/rounds/{}/",
        "/episodes/{}/",
        "/episodes/{}/replay/1/",
        "/episodes/{}/replay/1/0/",
        "/episodes/1/replay/{}/",
        "/jobs/attempts/{}/log/",
        "/queue/queues/{}/",
    ],
)
def test_a_number_that_no_database_holds_is_the_number_of_nothing(
    experiment: Experiment, admin_client: Client, path: str, number: int
) -> None:
    refused(admin_client.get(f"{path.format(number)}?format=json"), 404)


def test_a_text_that_no_database_holds_is_refused_before_any_view(
    experiment: Experiment, operator_client: Client
) -> None:
    for path in ("/new/?base=a%00b", "/episodes/?experiment=a%00b"):
        assert "has a NUL" in refused(operator_client.get(f"{path}&format=json"), 400)
    for path in ("/new/", "/sweeps/", "/experiments/mine/actions/extend/"):
        for field in ("base", "reason", "name"):
            error = refused(operator_client.post(f"{path}?format=json", {field: "a\0b"}), 400)
            assert error == f"{field}: has a NUL, which no text has"
    assert operator_client.post("/new/", {"base": "a\0b"}).status_code == 400
    refused(operator_client.get("/experiments/mine/chunks/a%00b/?format=json"), 404)


def test_a_queue_that_there_is_not_is_missing(admin_client: Client) -> None:
    assert admin_client.get("/queue/queues/99/").status_code == 404


def test_an_unknown_action_lists_those_there_are(
    experiment: Experiment, operator_client: Client
) -> None:
    path = "/experiments/mine/actions/explode/"
    error = refused(operator_client.post(f"{path}?format=json"), 404)
    assert "no such action" in error and "start, stop" in error
    assert error == refused(operator_client.post(path, headers=JSON), 404)


def test_without_a_session_a_script_is_told_and_a_browser_is_led_to_the_login(
    experiment: Experiment, anonymous: Client
) -> None:
    assert "/login/" in refused(anonymous.get("/?format=json"), 401)
    assert "/login/" in refused(anonymous.post("/experiments/mine/actions/start/?format=json"), 401)
    assert anonymous.get("/")["Location"].startswith("/login/")


def test_a_wrong_password_is_refused_in_json(operator: object, anonymous: Client) -> None:
    wrong = {"username": "operator", "password": "wrong"}
    assert "password" in refused(anonymous.post("/login/", wrong, headers=JSON), 401)
    page = anonymous.post("/login/", wrong)
    assert page.status_code == 200 and page["Content-Type"].startswith("text/html")


def test_a_role_that_may_not_is_refused_in_json(
    experiment: Experiment, viewer_client: Client
) -> None:
    path = "/experiments/mine/actions/start/"
    assert "role" in refused(viewer_client.post(f"{path}?format=json"), 403)
    assert "role operator" in viewer_client.post(path).content.decode()


def test_a_missing_csrf_token_is_explained_to_scripts_and_to_people(
    experiment: Experiment, operator: object
) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator)  # type: ignore[arg-type]
    path = "/experiments/mine/actions/start/"
    assert "X-CSRFToken" in refused(client.post(path, headers=JSON), 403)
    page = client.post(path)
    assert page.status_code == 403
    assert "The form was too old" in page.content.decode()
    assert not experiment.rounds.exists()


def test_a_method_that_is_not_answered_names_itself(
    experiment: Experiment, operator_client: Client
) -> None:
    answer = operator_client.get("/experiments/mine/actions/start/?format=json")
    assert refused(answer, 405).startswith("GET")
    assert answer["Allow"] == "POST"


def test_a_locked_database_is_busy_whoever_asks(
    operator_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_arguments: object) -> str:
        raise OperationalError("database is locked")

    monkeypatch.setattr(new_views, "proposal", locked)
    assert "The database is busy" in refused(operator_client.post("/new/?format=json"), 503)
    page = operator_client.post("/new/")
    assert page.status_code == 503 and "The database is busy" in page.content.decode()


def test_a_fault_of_ours_is_json_too(
    experiment: Experiment, operator: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object) -> str:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(views, "perform", broken)
    client = Client(raise_request_exception=False)
    client.force_login(operator)  # type: ignore[arg-type]
    path = "/experiments/mine/actions/start/"
    error = refused(client.post(f"{path}?format=json"), 500)
    assert "log" in error and "secret" not in error
    assert client.post(path)["Content-Type"].startswith("text/html")


def test_an_accept_header_asks_for_the_twin_of_a_page(
    experiment: Experiment, viewer_client: Client
) -> None:
    by_header = viewer_client.get("/experiments/mine/", headers=JSON)
    assert by_header.json() == viewer_client.get("/experiments/mine/?format=json").json()
    assert "Accept" in by_header["Vary"]
    for accept in ("*/*", "text/html,application/xhtml+xml,*/*;q=0.8"):
        page = viewer_client.get("/experiments/mine/", headers={"Accept": accept})
        assert page["Content-Type"].startswith("text/html")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("experiments/demo/series/?metric=zz", "metric: zz is not one of"),
        ("experiments/demo/series/?metric=success_rate&x0=a&x1=2", "x0: a is not a number"),
        ("experiments/demo/series/?metric=success_rate&px=inf", "px: inf is not a number"),
        ("experiments/demo/internalisation/?panel=zz", "panel: zz is not one of checkpoints"),
        ("experiments/demo/rounds/0/masks/?panel=zz", "panel: zz is not one of windows"),
        ("experiments/demo/rounds/0/gate/?panel=zz", "panel: zz is not one of evidence"),
        ("experiments/demo/rounds/0/gate/?as=zz", "as: zz is not one of published, standard"),
        ("experiments/demo/rounds/0/gate/?slots=x", "slots: x is not a whole number"),
        ("experiments/demo/rounds/0/gate/?slots=65", "slots: 65 is not between 1 and 64"),
        ("experiments/demo/rounds/0/gate/?tasks=-3", "tasks: -3 is not a whole number"),
        ("ledger/?page=2", "page: 2 is not one of 1"),
        ("ledger/?page=x", "page: x is not one of 1"),
        ("jobs/attempts/ATTEMPT/?from=x", "from: x is not a whole number"),
        ("jobs/attempts/ATTEMPT/log/?from=-1", "from: -1 is not a whole number"),
    ],
)
def test_what_a_page_of_numbers_cannot_read_is_refused(
    made: Made, viewer_client: Client, query: str, words: str
) -> None:
    path = "/" + query.replace("ATTEMPT", str(made.attempts[0].pk))
    answer = viewer_client.get(f"{path}&format=json")
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(words)
    assert viewer_client.get(path).status_code == 400


@pytest.mark.parametrize("query", ["jobs/?format=csv", "ledger/?format=xml"])
def test_a_format_that_a_page_has_not_is_refused(viewer_client: Client, query: str) -> None:
    answer = viewer_client.get(f"/{query}")
    assert answer.status_code == 400
    assert f"{query.split('=')[1]} is not one of html, json" in answer.content.decode()


@pytest.mark.parametrize(
    "query",
    [
        "ledger/?operation=MOVE",
        "ledger/?reached=moon",
        "ledger/?round=one",
        "ledger/?experiment=nosuch",
        "skills/?experiment=nosuch",
        "inbox/?show=some",
        "experiments/mine/zoom/?axis=week",
        "experiments/mine/zoom/?metric=nosuch",
        "episodes/?experiment=nosuch",
        "episodes/?sort=price",
        "episodes/?outcome=bogus",
        "episodes/behaviour/?by=xx",
        "episodes/behaviour/?metric=nosuch",
        "episodes/behaviour/?experiment=nosuch",
    ],
)
def test_an_unknown_value_of_a_parameter_is_refused_with_those_there_are(
    experiment: Experiment, viewer_client: Client, query: str
) -> None:
    answer = viewer_client.get(f"/{query}&format=json")
    assert answer.status_code == 400
    data = answer.json()
    name, value = query.split("?")[1].split("=")
    assert data["ok"] is False
    assert data["error"].startswith(f"{name}: {value} is not")
    page = viewer_client.get(f"/{query}")
    assert f"{value} is not" in page.content.decode()
